from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.api import Dataset
from bench.machine.data_files import VARIABLE, File
from bench.plugins.describe import size
from bench.plugins.registry import Registry
from tools.dataset_page import card, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "datasets.md"


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The plug-ins in a world without data: the page must not depend on what a machine happens to have."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return Registry()


def test_the_page_is_current(registry: Registry) -> None:
    assert PAGE.read_text("utf-8") == page(registry) + "\n", "run: python -m tools.dataset_page docs/datasets.md"


def test_every_dataset_says_where_it_is_from_and_under_which_terms(registry: Registry) -> None:
    for name in registry.plugins("dataset"):
        dataset: Dataset = registry.make("dataset", name, {})
        assert dataset.source, name
        assert dataset.licence, name
        assert bool(dataset.shape) >= bool(dataset.files), name


@dataclass(frozen=True)
class Springs(Dataset):
    """Loads and lengths."""

    stiffness: float = 2.0
    task = "regression"
    source, licence, notes = "the cellar", "CC0", ("rusty",)
    shape = (7, 1)
    files = (File("springs.txt", "http://localhost/springs", 12, "ab" * 32),)


def test_a_card_tells_everything(registry: Registry) -> None:
    told = card("springs", "Springs.\n\nHooke 1678.", Springs())
    for said in (
        "## springs\n\nSprings.\n\nLoads and lengths.\n\nHooke 1678.\n\n- source: the cellar\n- licence: CC0\n",
        "- option: `stiffness`: float, default 2.0",
        "- note: rusty",
        f"`springs.txt`, 12 bytes, sha256 `{'ab' * 32}`, from <http://localhost/springs>",
    ):
        assert said in told
    assert size(Springs()) == ("7", "1 feature")
    assert size(registry.make("dataset", "digits", {})) == ("1,797", "image 1 x 8 x 8")
    assert size(registry.make("dataset", "csv", {})) == ("-", "-")
    assert size(registry.make("dataset", "toy", {})) == ("200", "1 feature")
    assert size(registry.make("dataset", "toy", {"test": "fresh"})) == ("400", "1 feature")
