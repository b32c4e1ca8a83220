"""torchvision beside a CPU build of torch.

PyPI's torchvision is built for a CUDA torch. Beside a CPU torch its compiled operators cannot be loaded, and then its
import fails: "operator torchvision::nms does not exist" (and so does that of other packages which import torchvision,
torchmetrics among them). Datasets, transforms and models need none of these operators. Where, and only where, they are
missing, this module declares the two that the import asks for; calling one is still an error, as it has to be.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from bench.errors import UserError

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # a torch.library.Library takes its operators with it when it is collected


def import_torchvision() -> ModuleType:
    """Import torchvision, with the missing operators declared if it cannot be had otherwise."""
    try:
        return importlib.import_module("torchvision")
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise UserError("torchvision is not installed; 'pip install \"torchvision>=0.28,<0.29\"'") from None
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    # The import stopped half-way: forget what it left, or the next one would find the fragments.
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}{SCHEMA}")
    _declared.append(library)
    return importlib.import_module("torchvision")
