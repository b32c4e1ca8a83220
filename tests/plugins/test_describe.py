"""Options in words: as a suite file has them."""

import tomllib

import pytest

from bench.plugins.describe import option_text

VALUES = [True, 3, 0.5, 1e-9, "a 'b' \"c\"", [1, 2.5], ["x", [False]], {"rate": 0.1, "on": True}]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_reads_back_from_toml(value: object) -> None:
    assert tomllib.loads(f"option = {option_text(value)}") == {"option": value}


def test_none_has_a_word() -> None:
    assert option_text((None, 1)) == "[none, 1]"
