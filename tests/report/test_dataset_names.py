"""Names of datasets on a page: a file is shown by its stem, and its whole name stands in the provenance."""

from pathlib import Path

from bench.plugins.registry import Registry
from bench.report.write import write_report
from bench.store.store import Store
from tests.fixtures.results import fill, steps


def test_a_long_name_of_a_file_is_on_the_page_once(store: Store, tmp_path: Path) -> None:
    name = "csv:data/bikes.csv?target=rentals&categories=one-hot"
    methods = ["a", "b"]
    fill(store, steps(methods), methods=methods, datasets=[name], seeds=5, baseline="a", shown=["rmse"])
    write_report(store, Registry(), tmp_path, ["made"])
    text = (tmp_path / "report.md").read_text("utf-8")
    assert text.count("csv:data/bikes.csv?target=rentals\\&categories=one-hot") == 1
    assert "| bikes | csv:data/bikes.csv" in text.partition("### Provenance")[2]
    assert "**bikes, 5 seeds" in text


def test_two_files_of_one_stem_keep_their_names(store: Store, tmp_path: Path) -> None:
    names = ["csv:old/bikes.csv", "csv:new/bikes.csv"]
    fill(store, steps(["a", "b"]), methods=["a", "b"], datasets=names, seeds=2, baseline="a", shown=["rmse"])
    write_report(store, Registry(), tmp_path, ["made"])
    text = (tmp_path / "report.md").read_text("utf-8")
    assert all(f"**{name} (2 seeds)**" in text for name in names)
