import hashlib
import importlib.util
import io
import os
import pickle
import struct
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.api import Array
from bench.datasets import _cifar, cifar10
from bench.datasets._cifar import Images, read_batches
from bench.errors import UserError
from bench.machine.data_files import VARIABLE, File
from bench.plan.cells import checked
from bench.plugins.registry import Registry


def python2(value: object) -> bytes:
    """A value in the opcodes that Python 2 wrote: byte strings, and arrays rebuilt by name."""
    match value:
        case np.ndarray():
            state = python2(1) + python2(value.shape) + python2_dtype() + b"\x89" + python2(value.tobytes())
            begin = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + python2((0,)) + python2(b"b") + b"tR"
            return begin + b"(" + state + b"tb"
        case bytes():
            return b"T" + struct.pack("<i", len(value)) + value
        case int():
            return b"J" + struct.pack("<i", value)
        case tuple():
            return b"(" + b"".join(map(python2, value)) + b"t"
        case list():
            return b"](" + b"".join(map(python2, value)) + b"e"
        case dict():
            return b"}(" + b"".join(python2(k) + python2(v) for k, v in value.items()) + b"u"
    raise TypeError(type(value))


def python2_dtype() -> bytes:
    made = b"cnumpy\ndtype\n(" + python2(b"u1") + python2(0) + python2(1) + b"tR"
    return made + b"(" + python2(3) + python2(b"|") + b"NNN" + python2(-1) * 2 + python2(0) + b"tb"


def batch(rows: int, seed: int) -> tuple[Array, Array, bytes]:
    """Pixels `[rows, 3072]`, classes and the pickle that holds them."""
    random = np.random.default_rng(seed)
    pixels, classes = random.integers(0, 256, (rows, 3072), dtype=np.uint8), random.integers(0, 10, rows)
    content = {
        b"batch_label": b"a batch",
        b"data": pixels,
        b"labels": classes.tolist(),
        b"filenames": [b"x.png"] * rows,
    }
    return pixels, classes, b"\x80\x02" + python2(content) + b"."


def test_the_tests_pickles_are_what_numpy_reads(tmp_path: Path) -> None:
    """The format written here is the one that the ordinary reader knows."""
    pixels, classes, content = batch(3, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions of numpy dislike how Python 2 spelled it
        entry = pickle.loads(content, encoding="bytes")
    np.testing.assert_array_equal(entry[b"data"], pixels)
    assert entry[b"labels"] == classes.tolist()


def test_batches_are_read_in_order_as_channels_rows_columns(tmp_path: Path) -> None:
    parts = [batch(rows, seed) for seed, rows in enumerate((4, 3))]
    for number, (_, _, content) in enumerate(parts):
        (tmp_path / str(number)).write_bytes(content)
    x, y = read_batches([tmp_path / "0", tmp_path / "1"])
    assert (x.shape, x.dtype.name, y.dtype.name) == ((7, 3, 32, 32), "uint8", "int64")
    np.testing.assert_array_equal(y, np.concatenate([classes for _, classes, _ in parts]))
    # 1024 red, 1024 green, 1024 blue values, row by row
    assert x[5, 1, 7, 30] == parts[1][0][1, 1024 + 32 * 7 + 30]


class Evil:
    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self.reduced = (call, arguments)

    def __reduce__(self) -> Any:
        return self.reduced


def evil_pickles(path: Path) -> Iterator[bytes]:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.dumps(Evil(os.mkdir, str(path)), protocol)
        yield pickle.dumps({b"data": Evil(eval, f"__import__('os').mkdir({str(path)!r})")}, protocol)
        yield pickle.dumps(np.zeros(3, dtype=object), protocol)
    yield b"\x80\x02cnumpy\nfromfile\n(" + python2(b"/etc/passwd") + b"tR."
    yield b"\x80\x02cbuiltins\ngetattr\n."


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    path, made = tmp_path / "evil", tmp_path / "made"
    for content in evil_pickles(made):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"cannot be read: .*(refused|persistent|unsupported)"):
            read_batches([path])
        assert not made.exists()
    pickle.loads(next(evil_pickles(made)))  # the ordinary reader does run it
    assert made.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        b"\x80\x02}.",
        b"\x80\x02" + python2({b"data": b"text", b"labels": [1]}) + b".",
        b"\x80\x02" + python2({b"data": np.zeros((2, 3071), np.uint8), b"labels": [1, 2]}) + b".",
        b"\x80\x02" + python2({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1, 2, 3]}) + b".",
        b"\x80\x02" + python2({b"data": np.zeros((1, 3072), np.uint8), b"labels": [1]}).replace(b"u1", b"u2") + b".",
        batch(2, 0)[2][:-2000],
    ],
    ids=["empty", "text", "no keys", "text for pixels", "too small", "labels", "type", "cut"],
)
def test_what_is_no_batch_is_told_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(content)
    with pytest.raises(UserError, match=str(tmp_path / "batch")) as caught:
        read_batches([tmp_path / "batch"])
    assert "\n" not in str(caught.value)


@pytest.fixture
def small(tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Images:
    """A world whose CIFAR-10 is six small files in the published format, packed in an archive on disk."""
    _cifar._kept.cache_clear()
    _cifar._published.cache_clear()
    packed, declared, parts = io.BytesIO(), [], []
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for seed, name in enumerate(["data_batch_1", "data_batch_2", "test_batch", "batches.meta"]):
            pixels, classes, content = batch(5, seed)
            about = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
            parts.append((pixels.reshape(-1, 3, 32, 32), classes))
            declared.append((about.name, content))
    whole = packed.getvalue()
    archive = File("cifar-10-python.tar.gz", "http://127.0.0.1:9/x", len(whole), md5=hashlib.md5(whole).hexdigest())
    (data_folder / archive.name).write_bytes(whole)
    files = [
        File(name, "", len(c), hashlib.sha256(c).hexdigest(), hashlib.md5(c).hexdigest(), archive)
        for name, c in declared
    ]
    train_x, train_y = (np.concatenate([parts[0][i], parts[1][i]]) for i in (0, 1))
    expected = Images(train_x, train_y, *parts[2])
    for module in (_cifar, cifar10):
        monkeypatch.setattr(module, "ARCHIVE", archive)
        monkeypatch.setattr(module, "TRAIN", tuple(files[:2]))
        monkeypatch.setattr(module, "TEST", (files[2],))
    monkeypatch.setattr(cifar10.Cifar10, "files", tuple(files))
    monkeypatch.setattr(_cifar, "COPY_SHA256", expected.sha256)
    return expected


def same(found: Images, expected: Images) -> bool:
    return all(np.array_equal(getattr(found, name), getattr(expected, name)) for name in vars(expected))


@pytest.fixture
def without_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)


def test_fetched_loaded_and_kept_as_a_plain_copy(
    small: Images, data_folder: Path, tmp_path: Path, without_torchvision: None
) -> None:
    dataset = Registry().make("dataset", "cifar10", {})
    assert "uqbench data fetch cifar10" in dataset.skip()
    dataset.fetch(data_folder)
    assert dataset.skip() is None
    assert same(_cifar.images(), small)
    split = checked(dataset.load(0))
    np.testing.assert_allclose(split.train_x, small.train_x / 255, rtol=1e-6)
    assert (split.train_x.dtype.name, split.classes, split.problem.inputs) == ("float32", 10, (3, 32, 32))
    assert dataset.load(1).train_x is split.train_x

    copy = tmp_path / "cache" / "uqbench" / _cifar.COPY
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]
    for file in dataset.files:
        (data_folder / file.name).unlink()
    assert same(_cifar.images(), small)  # from the copy alone
    assert dataset.skip() is None


@pytest.mark.parametrize("damage", ["cut", "other", "pickle"])
def test_a_damaged_copy_is_not_believed(
    small: Images, data_folder: Path, tmp_path: Path, damage: str, without_torchvision: None
) -> None:
    Registry().make("dataset", "cifar10", {}).fetch(data_folder)
    copy = tmp_path / "cache" / "uqbench" / _cifar.COPY
    _cifar.keep(small, copy)
    if damage == "cut":
        copy.write_bytes(copy.read_bytes()[:-500])
    elif damage == "other":
        _cifar.keep(Images(small.train_x, 9 - small.train_y, small.test_x, small.test_y), copy)
    else:
        np.savez(copy, **{**vars(small), "train_y": np.array([Evil(os.mkdir, str(tmp_path / "made"))])})
    assert same(_cifar.images(), small)
    assert not (tmp_path / "made").exists()


def test_a_damaged_batch_is_refused_before_it_is_read(
    small: Images, data_folder: Path, without_torchvision: None
) -> None:
    dataset = Registry().make("dataset", "cifar10", {})
    dataset.fetch(data_folder)
    path = data_folder / "cifar-10-batches-py" / "data_batch_2"
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="data_batch_2 is not the published file: sha256"):
        dataset.load(0)


def test_torchvisions_class_unpacks_where_it_is_installed(
    small: Images, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    from bench.machine.torchvision_compat import import_torchvision

    reader = import_torchvision().datasets.CIFAR10
    monkeypatch.setattr(reader, "tgz_md5", _cifar.ARCHIVE.md5)
    lists = [[(Path(file.name).name, file.md5)] for file in (*_cifar.TRAIN, *_cifar.TEST)]
    monkeypatch.setattr(reader, "train_list", lists[0] + lists[1])
    monkeypatch.setattr(reader, "test_list", lists[2])
    monkeypatch.setattr(reader, "__init__", None)  # it would read the pickles without restriction
    Registry().make("dataset", "cifar10", {}).fetch(data_folder)
    assert same(_cifar.images(), small)
    assert not (data_folder / "cifar-10-python.tar.gz").exists()


def test_the_declared_files_are_torchvisions() -> None:
    if importlib.util.find_spec("torchvision") is None:
        pytest.skip("torchvision is not installed")
    from bench.machine.torchvision_compat import import_torchvision

    reader = import_torchvision().datasets.CIFAR10
    assert (_cifar.ARCHIVE.url, _cifar.ARCHIVE.md5) == (reader.url, reader.tgz_md5)
    declared = {file.name: file.md5 for file in cifar10.Cifar10.files}
    listed = dict((*reader.train_list, *reader.test_list, (reader.meta["filename"], reader.meta["md5"])))
    assert declared == {f"{reader.base_folder}/{name}": md5 for name, md5 in listed.items()}


def test_real_images(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked = os.environ.get("UQBENCH_CIFAR")
    if unpacked:
        monkeypatch.setenv(VARIABLE, unpacked)
    dataset = Registry().make("dataset", "cifar10", {})
    if reason := dataset.skip():
        pytest.skip(f"{reason} (a folder that holds the unpacked files may be named by UQBENCH_CIFAR)")
    monkeypatch.setattr(_cifar, "keep", lambda found, path: None)  # the user's cache is not the tests'
    found = _cifar.images()
    assert found.sha256 == _cifar.COPY_SHA256
    assert (found.train_x.shape, found.test_x.shape) == ((50_000, 3, 32, 32), (10_000, 3, 32, 32))
    np.testing.assert_array_equal(np.bincount(found.train_y), [5000] * 10)
    np.testing.assert_array_equal(np.bincount(found.test_y), [1000] * 10)
    mean = [found.train_x[:, c].mean() / 255 for c in range(3)]
    std = [found.train_x[:, c].std() / 255 for c in range(3)]
    np.testing.assert_allclose(mean, (0.49139968, 0.48215841, 0.44653091), atol=1e-8)
    np.testing.assert_allclose(std, (0.24703223, 0.24348513, 0.26158784), atol=1e-8)
