import pytest

from bench.text_tables import cut, markdown_table


def test_a_markdown_table_aligns_numbers_to_the_right() -> None:
    lines = markdown_table(("", "a", "b"), [("x", "1", "two")], numbers=[1])
    assert lines == ["| | a | b |", "| --- | ---: | --- |", "| x | 1 | two |"]


def test_a_padded_table_has_lines_of_one_length() -> None:
    lines = markdown_table(("name", "n"), [("x", "100"), ("a long name", "2")], padded=True)
    assert lines[0] == "| name        | n   |"
    assert lines[1] == "| ----------- | --- |"
    assert len({len(line) for line in lines}) == 1


def test_a_table_without_rows_is_its_header() -> None:
    assert markdown_table(("a",), [], padded=True) == ["| a |", "| - |"]


@pytest.mark.parametrize(("text", "line"), [("short", "short"), ("123456", "123456"), ("1234567", "12345…")])
def test_cutting_keeps_what_fits(text: str, line: str) -> None:
    assert cut(text, 6) == line


def test_cutting_makes_one_line() -> None:
    assert cut(" a\nb\tc ", 6) == "a b c"
