"""SVHN: 99,289 colour images of house numbers, 32 x 32 pixels in ten classes; 73,257 train, 26,032 test.

Netzer, Wang, Coates, Bissacco, Wu and Ng 2011, "Reading Digits in Natural Images with Unsupervised Feature Learning":
the cropped digits, without the additional 531,131 training images. There is one published split: the repeats of an
experiment differ in their seed. The files were not fetched for this repository: addresses and md5 sums are
torchvision's, sizes and sha256 sums those of TensorFlow Datasets, and the reader is tested on generated files of the
same format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.api import Array, File, UserError
from bench.datasets._cifar import Images
from bench.datasets._published_images import PublishedImages

ADDRESS = "http://ufldl.stanford.edu/housenumbers"


@dataclass(frozen=True)
class Svhn(PublishedImages):
    """Images of shape `[3, 32, 32]`, pixels from 0 to 1; class 0 is the digit 0, which the files call 10."""

    title = "SVHN"
    name = "svhn"
    source = "ufldl.stanford.edu/housenumbers"
    licence = "none stated; for non-commercial use"
    shape = (99_289, 3, 32, 32)
    files = (
        File(
            "svhn/train_32x32.mat",
            f"{ADDRESS}/train_32x32.mat",
            182_040_794,
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
        ),
        File(
            "svhn/test_32x32.mat",
            f"{ADDRESS}/test_32x32.mat",
            64_275_384,
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            "eb5a983be6a315427106f1b164d9cef3",
        ),
    )

    def read(self, paths: Sequence[Path]) -> Images:
        """Return the images and classes of two files."""
        return Images(*(part for path in paths for part in read_mat(path)))


def read_mat(path: Path) -> tuple[Array, Array]:
    """Return the images and classes of a MATLAB file. Verify it first."""
    from scipy.io import loadmat

    try:
        found: dict[str, Any] = loadmat(path, variable_names=("X", "y"))
        x, y = found["X"], found["y"].reshape(-1)
    except Exception as error:  # scipy raises errors of many types for content that somebody made up
        raise UserError(
            f"{path}: not a file of SVHN: {type(error).__name__}: {' '.join(str(error).split())[:100]}"
        ) from None
    if x.dtype != np.uint8 or x.ndim != 4 or x.shape[:3] != (32, 32, 3) or x.shape[3] != len(y):
        raise UserError(
            f"{path}: images of {x.dtype} {list(x.shape)} and {len(y)} classes; expected bytes [32, 32, 3, rows]"
        )
    return np.ascontiguousarray(x.transpose(3, 2, 0, 1)), y.astype(np.int64) % 10
