"""The document of a submission, `submission.toml`: who predicted what, how, and which files hold the predictions."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from pydantic.dataclasses import dataclass

from bench.errors import UserError
from bench.spec.mistakes import first_mistake
from bench.spec.names import name_fault

FILE = "submission.toml"
MOST_BYTES = 2**20  # of a document
MOST_PREDICTIONS = 1_000
MOST_OPTION = 10**6  # the largest whole number among the options of a dataset, such as its rows
LONGEST_TEXT = 500  # characters of who and how
METHOD = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,79}")
SIGNS = "<>&`"  # of no use in a name, and of use to whom makes a page do what it should not

Kind = Literal["points", "normal", "quantiles", "interval", "probabilities", "logits"]


def _method(name: str) -> str:
    if not METHOD.fullmatch(name) or name != name.strip():
        raise ValueError(f"method {name[:40]!r}: use letters, digits, blanks and . _ + - (at most 80)")
    return name


def _text(text: str) -> str:
    fault = name_fault(text, LONGEST_TEXT)
    if fault or any(sign in text for sign in SIGNS):
        raise ValueError(f"{text[:40]!r}: {fault or f'it has one of the signs {SIGNS}'}")
    return text


def _file(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}\.(npz|csv|parquet)", name):
        raise ValueError(f"file {name[:40]!r}: name an .npz, .csv or .parquet file beside {FILE}, without a folder")
    return name


def _dataset(name: str) -> str:
    _check_place(name.partition(":")[2])
    for pair in name.partition("?")[2].split("&"):
        _check_place(pair.partition("=")[2])
    return name


def _options(options: dict[str, Any]) -> dict[str, Any]:
    for value in options.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                _check_place(each)
            elif isinstance(each, int) and each > MOST_OPTION:
                raise ValueError(f"options: {each:,} is more than {MOST_OPTION:,}")
    return options


def _check_place(name: str) -> None:
    """Raise for a path that leads out of the current folder: whoever checks a submission did not write it."""
    if name.startswith(("/", "~", "\\")) or ".." in name or re.match("[A-Za-z]:", name):
        raise ValueError(f"dataset: {name[:40]!r}: name files by their path inside the current or the data folder")


Text = Annotated[StrictStr, AfterValidator(_text)]
Number = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Predictions:
    """The predictions for the test rows of one split."""

    file: Annotated[StrictStr, AfterValidator(_file)]
    split: Annotated[StrictInt, Field(ge=0, le=10**6)]
    data: Annotated[StrictStr, Field(pattern=r"^[0-9a-f]{32}$")]  # the fingerprint of the split
    seed: Annotated[StrictInt, Field(ge=0, le=10**6)] | None = None  # None: the number of the split
    noise_variance: Annotated[Number, Field(ge=0)] | None = None  # of observations around points

    @property
    def used_seed(self) -> int:
        """The seed of the cell."""
        return self.split if self.seed is None else self.seed


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Submission:
    """Everything that a document says."""

    method: Annotated[StrictStr, AfterValidator(_method)]
    who: Text
    how: Text
    dataset: Annotated[StrictStr, Field(min_length=1, max_length=500), AfterValidator(_dataset)]
    kind: Kind
    predictions: Annotated[list[Predictions], Field(min_length=1, max_length=MOST_PREDICTIONS)]
    options: Annotated[dict[str, Any], AfterValidator(_options)] = Field(default_factory=dict)  # of the dataset
    levels: list[Number] = Field(default_factory=list)  # of quantiles
    level: Annotated[Number, Field(gt=0, lt=1)] | None = None  # of an interval
    # What nobody can check here: seconds of training, hardware, ...
    reported: Annotated[dict[Text, Text | Number], Field(max_length=30)] = Field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.kind == "quantiles") != bool(self.levels):
            raise ValueError("levels: quantiles have levels, such as [0.05, 0.5, 0.95]; other kinds have none")
        if (self.kind == "interval") != (self.level is not None):
            raise ValueError("level: an interval has one, such as 0.9; other kinds have none")
        places = [(each.split, each.used_seed) for each in self.predictions]
        if len(set(places)) < len(places):
            raise ValueError("predictions: every split and seed once")


def read_submission(path: Path) -> tuple[Submission, Path]:
    """Return a submission and its folder; `path` is the document, or the folder that holds it."""
    document = path / FILE if path.is_dir() else path
    content = read_bounded(document, MOST_BYTES)
    try:
        table: Mapping[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise UserError(f"{document}: not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{document}: not TOML: {' '.join(str(error).split())[:200]}") from None
    keys = {"": [f.name for f in fields(Submission)], "predictions": [f.name for f in fields(Predictions)]}
    keys |= {f"predictions.{n}": keys["predictions"] for n in range(MOST_PREDICTIONS)}
    try:
        return Submission(**table), document.parent
    except ValidationError as error:
        raise UserError(f"{document}: {' '.join(first_mistake(error, keys).split())}") from None


def read_bounded(path: Path, most: int) -> bytes:
    """Return the content of a regular file, never through a link; raises, before it is read, where it is too large."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UserError(f"{path}: not a regular file")
            if facts.st_size > most:
                raise UserError(f"{path}: {facts.st_size:,} bytes; at most {most:,} are read")
            return file.read(most)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        link = " (links are not followed)" if path.is_symlink() else ""
        raise UserError(f"{path}: {error.strerror or error}{link}") from None
