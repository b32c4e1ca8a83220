"""docs/suites.md has every key that a suite may hold, with its default, and no other."""

import json
import re
from dataclasses import fields
from pathlib import Path

from bench.plan.suite import Suite
from bench.spec.protocol import Protocol, Training

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "suites.md").read_text("utf-8")


def documented() -> dict[str, str]:
    """The keys in the tables of the first two parts of the page, each with the text of its default."""
    found: dict[str, str] = {}
    part = TEXT.partition("## Keys of a suite")[2].partition("## `[network]`")[0]
    for keys, defaults in re.findall(r"^\| ((?:`[^|]*`(?:, )?)+) \|([^|]*)\|", part, re.MULTILINE):
        names, values = re.findall(r"`\[?([\w.]+)\]?`", keys), defaults.strip().split(", ")
        found |= dict(zip(names, values if len(values) == len(names) else values * len(names), strict=True))
    return found


def test_every_key_is_documented_with_its_default() -> None:
    keys = documented()
    known = Suite.model_fields.keys() - {"name", "protocol", "datasets", "methods"} | {"datasets.NAME", "methods.NAME"}
    declared = {field.name: field.default for model in (Protocol, Training) for field in fields(model)}
    assert keys.keys() == known | declared.keys()
    declared |= {name: field.default for name, field in Suite.model_fields.items()}
    plain = {name: value for name, value in declared.items() if isinstance(value, bool | int | float | str)}
    assert {name: keys[name].strip("`") for name in plain} == {name: json.dumps(plain[name]) for name in plain}
    assert len(plain) > 25
