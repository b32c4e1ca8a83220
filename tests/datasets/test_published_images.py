"""Image sets that are downloaded, on small generated files in the format of the published ones."""

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from bench.api import Array, Dataset
from bench.datasets import _published_images, cifar10_c, cifar100, fashion_mnist, mnist, svhn
from bench.datasets._cifar import Images
from bench.datasets._idx import read_idx
from bench.errors import UserError
from bench.machine.data_files import File
from bench.plan.cells import checked, fingerprint
from bench.plugins.registry import Registry
from bench.probes.shift import Shift
from tests.datasets.test_cifar import Evil, python2
from tests.fixtures.commands import Command
from tests.fixtures.sites import Site

RANDOM = np.random.default_rng(5)


def compressed(data: bytes) -> bytes:
    """Compress without the time: it would be in the name of a test, which each process of a run must know."""
    return gzip.compress(data, mtime=0)


def pixels(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape, dtype=np.uint8)


def idx(array: Array) -> bytes:
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return compressed(header + array.astype(np.uint8).tobytes())


def mat(x: Array, y: Array) -> bytes:
    content = io.BytesIO()
    savemat(content, {"X": x, "y": y[:, None]}, do_compression=True)
    return content.getvalue()


def npy(array: Array) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def packed(members: dict[str, bytes], mode: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as tar:  # type: ignore[call-overload]  # a variable mode
        for name, data in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
    return content.getvalue()


def declared(file: File, content: bytes, site: Site, archive: File | None = None) -> File:
    """The file as it would be declared if this were its content; the site gives it."""
    if archive is None:
        site.files[f"/{file.name}"] = content
    return replace(
        file,
        url="" if archive else f"{site.address}/{file.name}",
        size=None if file.size is None else len(content),
        sha256=hashlib.sha256(content).hexdigest() if file.sha256 else "",
        md5=hashlib.md5(content).hexdigest(),
        archive=archive,
    )


@pytest.fixture(autouse=True)
def forget() -> None:
    _published_images._scaled.cache_clear()


def fetched(name: str, command: Command, **options: object) -> Dataset:
    """The dataset after a download from the command line."""
    assert "uqbench data fetch" in str(Registry().make("dataset", name, options).skip())
    done = command("data", "fetch", name)
    assert (done.code, done.err) == (0, ""), done.err
    dataset: Dataset = Registry().make("dataset", name, options)
    assert dataset.skip() is None
    return dataset


@pytest.mark.parametrize(("name", "cls"), [("mnist", mnist.Mnist), ("fashion-mnist", fashion_mnist.FashionMnist)])
def test_idx_files(
    name: str, cls: type[Dataset], site: Site, data_folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = [pixels(12, 28, 28), np.arange(12) % 10, pixels(5, 28, 28), np.arange(5)]
    files = [declared(file, idx(array), site) for file, array in zip(cls.files, arrays, strict=True)]
    monkeypatch.setattr(cls, "files", tuple(files))
    dataset = fetched(name, command)
    split = checked(dataset.load(0))
    assert (split.problem.inputs, split.classes, split.train_x.dtype.name) == ((1, 28, 28), 10, "float32")
    np.testing.assert_allclose(split.train_x[:, 0], arrays[0] / 255, rtol=1e-6)
    np.testing.assert_allclose(split.test_x[:, 0], arrays[2] / 255, rtol=1e-6)
    np.testing.assert_array_equal(split.train_y, arrays[1])
    assert dataset.load(1).train_x is split.train_x  # once for all splits
    path = data_folder / files[0].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="is not the published file"):
        dataset.load(0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not an idx file of bytes in 3 dimensions"),
        (b"\x1f\x8bjunk", "cannot be read"),
        (compressed(b"\x00\x00\x0d\x03" + bytes(12)), "not an idx file"),
        (idx(np.zeros((2, 3))), "not an idx file of bytes in 3 dimensions"),
        (compressed(bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 2, 2) + bytes(7)), "states 8 bytes, .* fewer"),
        (compressed(bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 2, 2) + bytes(9)), "states 8 bytes, .* more"),
        (compressed(bytes([0, 0, 8, 3]) + b"\xff" * 12 + bytes(9)), "fewer|cannot be read"),
        (idx(np.zeros((4, 2, 2)))[:-4], "cannot be read"),
    ],
)
def test_what_is_no_idx_file(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file.gz").write_bytes(content)
    with pytest.raises(UserError, match=reason):
        read_idx(tmp_path / "file.gz", 3)


def test_matlab_files_of_svhn(site: Site, data_folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = pixels(32, 32, 3, 11), pixels(32, 32, 3, 4)
    labels = np.arange(11) % 10 + 1
    contents = [mat(train, labels), mat(test, np.array([10, 1, 2, 3]))]
    files = [declared(file, content, site) for file, content in zip(svhn.Svhn.files, contents, strict=True)]
    monkeypatch.setattr(svhn.Svhn, "files", tuple(files))
    split = checked(fetched("svhn", command).load(0))
    assert split.problem.inputs == (3, 32, 32)
    assert split.test_y.tolist() == [0, 1, 2, 3]  # the files call the digit 0 ten
    np.testing.assert_allclose(split.train_x[7, 2, 30, 4], train[30, 4, 2, 7] / 255, rtol=1e-6)


@pytest.mark.parametrize(
    "content",
    [
        b"not a file of MATLAB",
        b"",
        mat(np.zeros((32, 32, 3, 2)), np.ones(2)),
        mat(pixels(32, 32, 3, 2), np.ones(3)),
        mat(pixels(8, 8, 3, 2), np.ones(2)),
        packed({"a": b"b"}, "w"),
    ],
    ids=["text", "empty", "floats", "labels", "small", "tar"],
)
def test_what_is_no_file_of_svhn(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.mat").write_bytes(content)
    with pytest.raises(UserError, match=r"x\.mat: (not a file of SVHN|images of)") as caught:
        svhn.read_mat(tmp_path / "x.mat")
    assert "\n" not in str(caught.value)


def cifar100_batch(rows: int) -> tuple[Array, bytes]:
    found = pixels(rows, 3072)
    content = {
        b"data": found,
        b"fine_labels": [(7 * row) % 100 for row in range(rows)],
        b"coarse_labels": [row % 20 for row in range(rows)],
        b"filenames": [b"x.png"] * rows,
    }
    return found, b"\x80\x02" + python2(content) + b"."


def test_pickles_of_cifar100(site: Site, data_folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (train, train_batch), (_, test_batch) = cifar100_batch(9), cifar100_batch(4)
    whole = packed({"cifar-100-python/train": train_batch, "cifar-100-python/test": test_batch}, "w:gz")
    archive = declared(cifar100.ARCHIVE, whole, site)
    contents = zip(cifar100.Cifar100.files, (train_batch, test_batch), strict=True)
    files = tuple(declared(file, content, site, archive) for file, content in contents)
    monkeypatch.setattr(cifar100.Cifar100, "files", files)
    split = checked(fetched("cifar100", command).load(0))
    assert (split.classes, split.train_y.tolist()) == (100, [(7 * row) % 100 for row in range(9)])
    np.testing.assert_allclose(split.train_x, train.reshape(-1, 3, 32, 32) / 255, rtol=1e-6)
    coarse = Registry().make("dataset", "cifar100", {"labels": "coarse"}).load(0)
    assert (coarse.classes, coarse.test_y.tolist()) == (20, [0, 1, 2, 3])
    assert not (data_folder / archive.name).exists()  # unpacked, and not kept


def test_a_pickle_of_cifar100_that_would_run_code_is_refused(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = pickle.dumps({b"data": Evil(os.mkdir, str(tmp_path / "made")), b"fine_labels": []})
    (data_folder / "cifar-100-python").mkdir()
    for name in ("train", "test"):
        (data_folder / "cifar-100-python" / name).write_bytes(content)
    md5 = hashlib.md5(content).hexdigest()
    files = tuple(replace(file, md5=md5) for file in cifar100.Cifar100.files)
    monkeypatch.setattr(cifar100.Cifar100, "files", files)
    with pytest.raises(UserError, match=r"which no batch of CIFAR needs: refused"):
        Registry().make("dataset", "cifar100", {}).load(0)
    assert not (tmp_path / "made").exists()


CLEAN = Images(pixels(20, 3, 32, 32), np.arange(20) % 10, pixels(6, 3, 32, 32), np.arange(6))


@pytest.fixture
def corrupted(site: Site, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Array]:
    """Two corruptions of a small CIFAR-10, in an archive on a server."""
    arrays = {name: pixels(30, 32, 32, 3) for name in ("fog", "gaussian-noise")}
    labels = np.tile(CLEAN.test_y, 5).astype(np.uint8)
    contents = {cifar10_c.ARRAYS[name].name: npy(array) for name, array in arrays.items()}
    contents[cifar10_c.LABELS.name] = npy(labels)
    archive = declared(cifar10_c.ARCHIVE, packed(contents, "w"), site)
    made = {
        name: declared(cifar10_c.ARRAYS[name], contents[cifar10_c.ARRAYS[name].name], site, archive) for name in arrays
    }
    own = declared(cifar10_c.LABELS, contents[cifar10_c.LABELS.name], site, archive)
    monkeypatch.setattr(cifar10_c, "ARRAYS", made)
    monkeypatch.setattr(cifar10_c, "LABELS", own)
    monkeypatch.setattr(cifar10_c, "TRAIN", ())
    monkeypatch.setattr(cifar10_c, "TEST", ())
    monkeypatch.setattr(cifar10_c, "images", lambda: CLEAN)
    monkeypatch.setattr(cifar10_c.Cifar10C, "files", (*made.values(), own))
    return arrays


def test_published_corruptions_are_test_images(corrupted: dict[str, Array], command: Command) -> None:
    clean = checked(fetched("cifar10-c", command).load(0))
    np.testing.assert_allclose(clean.test_x, CLEAN.test_x / 255, rtol=1e-6)
    foggy = checked(Registry().make("dataset", "cifar10-c", {"corruption": "fog", "severity": 2}).load(0))
    np.testing.assert_allclose(foggy.test_x, corrupted["fog"][6:12].transpose(0, 3, 1, 2) / 255, rtol=1e-6)
    assert foggy.train_x is clean.train_x
    np.testing.assert_array_equal(foggy.test_y, clean.test_y)
    assert fingerprint(foggy) != fingerprint(clean)
    with pytest.raises(UserError, match="unknown corruption 'fogg'; did you mean fog"):
        Registry().make("dataset", "cifar10-c", {"corruption": "fogg"})


SUITE = """
title = "Published shifts"
seeds = 1
draws = 2
validation = 0.0
metrics = ["accuracy", "accuracy@published-fog:5"]
[probe]
kind = "shift"
corruptions = ["published-fog", "brightness"]
severities = [1, 5]
foreign = []
[training]
epochs = 1
[network]
kind = "conv"
[datasets.cifar10-c]
[methods.deterministic]
"""


def test_the_shift_probe_reads_published_images(corrupted: dict[str, Array], command: Command, tmp_path: Path) -> None:
    fetched("cifar10-c", command)
    (tmp_path / "published.toml").write_text(SUITE)
    run = command("run", "published.toml", "--store", "a.db")
    assert " 0 failed" in run.out, run.out + run.err
    shown = command("export", "--suite", "published", "--store", "a.db", "--out", "all.csv")
    assert shown.code == 0, shown.err
    text = (tmp_path / "all.csv").read_text()
    for condition in ("published-fog:1", "published-fog:5", "brightness:5", "all:5"):
        assert f"accuracy@{condition}" in text


def test_published_images_that_a_dataset_does_not_have(corrupted: dict[str, Array], command: Command) -> None:
    split = fetched("cifar10-c", command).load(0)
    Shift(corruptions=["published-fog"], severities=[1]).check(split)
    with pytest.raises(UserError, match=r"unknown corruption 'published-snow'; did you mean"):
        Shift(corruptions=["published-snow"], severities=[1]).check(split)
    with pytest.raises(UserError, match="'published-snow': this dataset comes with no shifted images"):
        Shift(corruptions=["published-snow"], severities=[1]).check(replace(split, shifts=None))


def test_labels_of_other_images_are_refused(
    corrupted: dict[str, Array], command: Command, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = fetched("cifar10-c", command)
    content = npy(np.zeros(30, np.uint8))
    (data_folder / "CIFAR-10-C" / "labels.npy").write_bytes(content)
    monkeypatch.setattr(cifar10_c, "LABELS", replace(cifar10_c.LABELS, md5=hashlib.md5(content).hexdigest()))
    with pytest.raises(UserError, match="the classes are not those of CIFAR-10's test images"):
        dataset.load(0)


def test_very_large_sets_are_not_downloaded_unasked(
    data_folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Registry().plugins("dataset")
    monkeypatch.setattr(Registry, "plugins", lambda self, kind: {"cifar10-c": found["cifar10-c"]})
    done = command("data", "fetch")
    assert done.out == "cifar10-c: left out, 3,088,969,751 bytes; for these: uqbench data fetch cifar10-c\n"
    assert list(data_folder.iterdir()) == []
