import pytest

from bench.leaderboard import collect
from bench.leaderboard.method_summaries import method_summaries
from bench.leaderboard.reading import example, reading_page
from bench.leaderboard.view_boards import board_views
from bench.plugins.describe import options_of
from bench.plugins.registry import Registry
from bench.store.store import Store
from tests.fixtures.results import fill, steps


def test_the_example_says_what_its_row_holds(store: Store) -> None:
    methods = ["a", "b", "c"]
    fill(store, steps(methods), methods=methods, baseline="b", metrics=["rmse"], datasets=["one", "two"])
    found = collect(store)
    shown = example(board_views(found, {}))
    assert shown is not None
    entry, words = shown.line.entry, " ".join(shown.sentences)
    assert entry.place == 3
    assert "Place 3, of 3 methods with a place: 2 methods were shown to be better." in words
    assert "Against b: worse" in words
    assert f"over {entry.repeats} repeats" in words
    assert shown.address == f"index.html#{shown.view.key}"


def test_without_a_place_there_is_no_example(store: Store) -> None:
    fill(store, steps(["a", "b"]), methods=["a", "b"], seeds=2)
    found = collect(store)
    assert reading_page(found, board_views(found, {}))["example"] is None


def test_summaries_name_the_publication_first_cited(store: Store) -> None:
    fill(store, steps(["mc-dropout", "nowhere"]), methods=["mc-dropout", "nowhere"])
    summaries = method_summaries(collect(store).rows, Registry())
    assert summaries["mc-dropout"].hover.startswith("Monte Carlo dropout. Gal and Ghahramani 2016, ")
    assert summaries["nowhere"].hover == ""


@pytest.mark.parametrize("name", sorted(Registry().plugins("method")))
def test_every_option_of_a_method_is_explained(name: str) -> None:
    for option in options_of(Registry().make("method", name, {})):
        assert option.meaning, option.name
