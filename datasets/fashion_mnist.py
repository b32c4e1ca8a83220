"""Fashion-MNIST: 70,000 grey images of clothes, 28 x 28 pixels in ten classes; 60,000 train, 10,000 test.

Xiao, Rasul and Vollgraf 2017, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms",
arXiv:1708.07747. There is one published split: the repeats of an experiment differ in their seed. The files were not
fetched for this repository: addresses and md5 sums are torchvision's, sizes and sha256 sums those of TensorFlow
Datasets, and the reader is tested on generated files of the same format.
"""

from dataclasses import dataclass

from bench.datasets._idx import IdxImages, published


@dataclass(frozen=True)
class FashionMnist(IdxImages):
    """Images of shape `[1, 28, 28]`, pixels from 0 to 1."""

    title = "Fashion-MNIST"
    name = "fashion-mnist"
    source = "github.com/zalandoresearch/fashion-mnist"
    licence = "MIT"
    files = published(
        "fashion-mnist",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
        """
        26421880 8d4fb7e6c68d591d4c3dfef9ec88bf0d 3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84
        29515 25c81989df183df01b3e8a0aad5dffbe a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845
        4422102 bef4ecab320f06d8554ea6380940ec79 346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073
        5148 bb300cfdad3c16e7a12a480ee83cd310 67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5
        """,
    )
