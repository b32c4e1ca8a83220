"""Which suites repeat the experiments of the paper, for `uqbench reproduce`."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bench.api import Measured, Reproduction, SuitePart


def reproductions() -> dict[str, Reproduction]:
    """Return the experiments by name, the protocol of the text first."""
    found = tomllib.loads((files("bench.reports") / "_paper_runs.toml").read_text("utf-8"))
    return {
        name: Reproduction(about.pop("title"), {protocol: _parts(forms) for protocol, forms in about.items()})
        for name, about in found.items()
    }


def _parts(forms: Mapping[str, Mapping[str, Any]]) -> tuple[SuitePart, SuitePart]:
    short = _part(forms["short"])
    return short, _part(forms["full"]) if "full" in forms else short


def _part(form: Mapping[str, Any]) -> SuitePart:
    measured = Measured(**form["measured"]) if "measured" in form else None
    return SuitePart(**{**form, "measured": measured})
