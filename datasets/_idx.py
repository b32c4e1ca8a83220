"""Reads idx files, the format of MNIST: a header of big-endian numbers, then bytes; packed with gzip.

The addresses and md5 sums are those of torchvision's classes, sizes and sha256 sums those of TensorFlow Datasets.
"""

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.api import Array, File, UserError
from bench.datasets._cifar import Images
from bench.datasets._published_images import PublishedImages

UNSIGNED_BYTE = 8
NAMES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def published(folder: str, address: str, facts: str) -> tuple[File, ...]:
    """Return the four files of a set, given the size, the md5 and the sha256 of each."""
    files = []
    for name, line in zip(NAMES, facts.strip().splitlines(), strict=True):
        size, md5, sha256 = line.split()
        files.append(File(f"{folder}/{name}-ubyte.gz", f"{address}/{name}-ubyte.gz", int(size), sha256, md5))
    return tuple(files)


class IdxImages(PublishedImages):
    """Grey images of 28 x 28 pixels in ten classes."""

    shape = (70_000, 1, 28, 28)

    def read(self, paths: Sequence[Path]) -> Images:
        """Return the images and classes of four files."""
        train_x, train_y, test_x, test_y = (
            read_idx(path, dimensions) for path, dimensions in zip(paths, (3, 1, 3, 1), strict=True)
        )
        for path, x, y in ((paths[0], train_x, train_y), (paths[2], test_x, test_y)):
            if len(x) != len(y):
                raise UserError(f"{path}: {len(x)} images, but {len(y)} classes")
        return Images(train_x[:, None], train_y.astype(np.int64), test_x[:, None], test_y.astype(np.int64))


def read_idx(path: Path, dimensions: int) -> Array:
    """Return the array of bytes in a file of so many dimensions. Verify it first."""
    try:
        with gzip.open(path) as content:
            header = content.read(4 + 4 * dimensions)
            if len(header) < 4 + 4 * dimensions or header[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
                raise UserError(f"{path}: not an idx file of bytes in {dimensions} dimensions")
            shape = struct.unpack(f">{dimensions}I", header[4:])
            size = math.prod(shape)
            values = content.read(size + 1)
    except (OSError, EOFError, zlib.error, OverflowError) as error:
        raise UserError(f"{path}: cannot be read: {' '.join(str(error).split())[:100]}") from None
    if len(values) != size:
        raise UserError(
            f"{path}: its header states {size:,} bytes, the file holds {'more' if len(values) > size else 'fewer'}"
        )
    return np.frombuffer(values, np.uint8).reshape(shape)
