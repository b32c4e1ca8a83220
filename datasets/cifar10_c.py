"""CIFAR-10-C: CIFAR-10's test images under 19 published corruptions at five severities; trained on clean images.

Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations",
arXiv:1903.12261. By default the test images are clean, and the probe `shift` evaluates one training under all
corruptions, which it calls `published-gaussian-noise` and so on (suite `shift-cifar10-c`). `corruption = "fog"` with
`severity` 1 to 5 makes those the test images of any other probe.

The files were not fetched for this repository: the address, the size and the sha256 of the archive are those of
TensorFlow Datasets, its md5 is Zenodo's, the md5 sums of the arrays are those of TorchUncertainty. The reader is tested
on generated files of the same format. The archive has 2.9 GB, and unpacked files as much again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from bench.api import (
    Array,
    Dataset,
    File,
    PublishedShifts,
    Split,
    UserError,
    find_file,
    missing_file,
    unknown_name,
    verified_file,
)
from bench.datasets._cifar import COPY, NAMES, TEST, TRAIN, images, scaled
from bench.datasets._published_images import as_pixels

ARCHIVE = File(
    "CIFAR-10-C.tar",
    "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
    2_918_471_680,
    "c72763e101c723b7c507b96205f7e938912a5d587376173b825850cf3cb876a7",
    "56bf5dcef84df0e2308c6dcbcbbd8499",
)
# The md5 of each array in the archive.
PUBLISHED = """
brightness 0a81ef75e0b523c3383219c330a85d48
contrast 3c8262171c51307f916c30a3308235a8
defocus_blur 7d1322666342a0702b1957e92f6254bc
elastic_transform 9421657c6cd452429cf6ce96cc412b5f
fog 7b397314b5670f825465fbcd1f6e9ccd
frost 31f6ab3bce1d9934abfb0cc13656f141
gaussian_blur c33370155bc9b055fb4a89113d3c559d
gaussian_noise ecaf8b9a2399ffeda7680934c33405fd
glass_blur 7361fb4019269e02dbf6925f083e8629
impulse_noise 2090e01c83519ec51427e65116af6b1a
jpeg_compression 2b9cc4c864e0193bb64db8d7728f8187
motion_blur fffa5f852ff7ad299cfe8a7643f090f4
pixelate 0f14f7e2db14288304e1de10df16832f
saturate 1cfae0964219c5102abbb883e538cc56
shot_noise 3a7239bb118894f013d9bf1984be7f11
snow bb238de8555123da9c282dea23bd6e55
spatter 8a5a3903a7f8f65b59501a6093b4311e
speckle_noise ef00b87611792b00df09c0b0237a1e30
zoom_blur 6ea8e63f1c5cdee1517533840641641b
labels c439b113295ed5254878798ffe28fd54
"""
SEVERITIES = 5


def _files() -> dict[str, File]:
    rows = (line.split() for line in PUBLISHED.strip().splitlines())
    return {
        name.replace("_", "-"): File(f"CIFAR-10-C/{name}.npy", "", None, md5=md5, archive=ARCHIVE) for name, md5 in rows
    }


ARRAYS = _files()
LABELS = ARRAYS.pop("labels")
NONE = "none"


@dataclass(frozen=True)
class Cifar10C(Dataset):
    """Images of shape `[3, 32, 32]`, pixels from 0 to 1."""

    corruption: str = NONE  # of the test images
    severity: int = 3  # of the corruption, 1 to 5

    title = "CIFAR-10-C"
    task = "classification"
    repeats = "seeds"
    source = "zenodo.org/records/2535967, for the images of www.cs.toronto.edu/~kriz/cifar.html"
    licence = "CC BY 4.0 for the corrupted images; none stated for CIFAR-10"
    shape = (60_000, 3, 32, 32)
    files = (*TRAIN, *TEST, NAMES, *ARRAYS.values(), LABELS)
    notes = ("one published split: repeats differ in their seed only", "training images are clean")
    expected_failures: ClassVar[Mapping[str, str]] = {
        "isolated": "the images are kept once for all splits: a copy for each would take 740 MB"
    }

    def __post_init__(self) -> None:
        if self.corruption not in (NONE, *ARRAYS):
            raise ValueError(str(unknown_name("corruption", self.corruption, (NONE, *ARRAYS))))
        if not 1 <= self.severity <= SEVERITIES:
            raise ValueError(f"severity must be from 1 to {SEVERITIES}, got {self.severity}")

    def skip(self) -> str | None:
        """Return how to have the files when they are not there."""
        clean = () if find_file(COPY) else (*TRAIN, *TEST)
        lacking = [file.name for file in (*clean, *ARRAYS.values(), LABELS) if not find_file(file.name)]
        return f"{missing_file(lacking[0])}; 'uqbench data fetch cifar10-c' downloads it (3.1 GB)" if lacking else None

    def load(self, split: int) -> Split:
        """Return the published split, whatever the number."""
        found = images()
        clean = replace(scaled(found), shifts=PublishedShifts(tuple(ARRAYS), corrupted_images))
        labels = _array(LABELS)
        if labels.shape != (SEVERITIES * len(found.test_y),) or (labels != np.tile(found.test_y, SEVERITIES)).any():
            raise UserError(f"{LABELS.name}: the classes are not those of CIFAR-10's test images, five times")
        return (
            clean
            if self.corruption == NONE
            else replace(clean, test_x=corrupted_images(self.corruption, self.severity))
        )


def corrupted_images(corruption: str, severity: int) -> Array:
    """Return CIFAR-10's test images under a published corruption: each file holds the five severities in order."""
    file = ARRAYS[corruption]
    array = _array(file)
    rows = len(array) // SEVERITIES
    if array.dtype != np.uint8 or array.shape != (SEVERITIES * rows, 32, 32, 3):
        raise UserError(
            f"{file.name}: {array.dtype} {list(array.shape)}; expected bytes [{SEVERITIES} x rows, 32, 32, 3]"
        )
    chosen = array[(severity - 1) * rows : severity * rows]
    return as_pixels(np.ascontiguousarray(chosen.transpose(0, 3, 1, 2)))


def _array(file: File) -> Array:
    """Return an array whose checksum was compared; only the part that is used is read."""
    path = verified_file(file)
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}: not a .npy file of numbers ({' '.join(str(error).split())[:100]})") from None
    return array
