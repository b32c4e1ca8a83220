"""Files in the format ARFF, beside liac-arff."""

from pathlib import Path

import pytest
from sklearn.externals import _arff as liac

from bench.datasets._arff import read_arff, read_header
from bench.errors import UserError
from tests.fixtures.openml import arff, table

CELLS = [r"a,'b, c',3,?", r"'it\'s', b ,3,4", '"a b", \'c\' ,3,"d\'e"', r"do,'\\',3,'x y'", "b,c,3,'?'"]


def test_rows_are_read_as_liac_arff_reads_them(tmp_path: Path) -> None:
    head = (
        "@relation r\n@attribute one string\n@ATTRIBUTE 'a two' string\n@attribute \"3\" numeric\n@attribute d string\n"
    )
    text = head + "@data\n" + "\n".join(CELLS * 3) + "\n"
    path = tmp_path / "cells.arff"
    path.write_text(text, "utf-8")
    expected = liac.loads(text)
    found = read_arff(path, frozenset())
    assert list(found.columns) == [name for name, _ in expected["attributes"]] == ["one", "a two", "3", "d"]
    for row, cells in enumerate(expected["data"]):
        for name, cell in zip(found.columns, cells, strict=True):
            assert found.columns[name].text(row) == ("?" if cell is None else f"{cell:g}" if name == "3" else cell)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no line @data"),
        ("@data\n", "the header declares no column"),
        ("@attribute a numeric\n@attribute a real\n@data\n", "declares 'a' twice"),
        ("@attribute a\n@data\n", "line 1: not a declaration of a column"),
        ("@attribute a relational\n@data\n", "column 'a' has type 'relational'"),
        ("@attribute a numeric\n1,2\n", "line 2: expected @attribute or @data, got '1,2'"),
        ("@attribute a numeric\n@data\n{0 1}\n", "line 3: sparse rows are not read"),
        ("@attribute a numeric\n@data\n1,2\n", "line 3: 2 cells where the header declares 1 columns"),
        ("@attribute a string\n@data\n'a\n", "line 3: a quotation mark is not closed"),
        ("@attribute a string\n@data\n'a'b\n", "line 3: a quotation mark is not closed, or stands inside"),
        ("@attribute a string\n@data\n\x80\n", "not UTF-8 text"),
    ],
)
def test_files_that_are_no_arff_tables(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.arff"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=reason):
        read_arff(path, frozenset())


def test_what_a_header_declares(tmp_path: Path) -> None:
    path = tmp_path / "table.arff"
    path.write_bytes(arff())
    header = read_header(path)
    assert header.names == tuple(table())
    assert header.nominal == {"kind of house", "zone"}
    assert header.words == {"agent"}
