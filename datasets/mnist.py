"""MNIST: 70,000 grey images of handwritten digits, 28 x 28 pixels in ten classes; 60,000 train, 10,000 test.

LeCun, Bottou, Bengio and Haffner 1998, "Gradient-Based Learning Applied to Document Recognition", doi:10.1109/5.726791.
There is one published split: the repeats of an experiment differ in their seed. The files were not fetched for this
repository: addresses and md5 sums are torchvision's, sizes and sha256 sums those of TensorFlow Datasets, and the reader
is tested on generated files of the same format.
"""

from dataclasses import dataclass

from bench.datasets._idx import IdxImages, published


@dataclass(frozen=True)
class Mnist(IdxImages):
    """Images of shape `[1, 28, 28]`, pixels from 0 to 1."""

    title = "MNIST"
    name = "mnist"
    source = "yann.lecun.com/exdb/mnist, from PyTorch's copy"
    licence = "CC BY-SA 3.0"
    files = published(
        "mnist",
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        """
        9912422 f68b3c2dcbeaaa9fbdd348bbdeb94873 440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609
        28881 d53e105ee54ea40749a09fcbcd1e9432 3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c
        1648877 9fb629c4189551a2d022fa330f9573f3 8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6
        4542 ec29112dd5afa0611ce80d1b7f02629c f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6
        """,
    )
