"""torchvision with a CPU build of torch.

PyPI's torchvision is built for a CUDA torch. With a CPU torch its compiled operators cannot be loaded, and its import
fails: "operator torchvision::nms does not exist" (as does the import of packages that import torchvision, such as
torchmetrics). Datasets, transforms and models need none of these operators. If they are missing, this module declares
the two that the import needs; calling one is still an error.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

from bench.errors import UserError

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[Any] = []  # the operators of a torch.library.Library end with it


def import_torchvision() -> ModuleType:
    """Import torchvision; declare missing operators if the import fails without them."""
    try:
        return importlib.import_module("torchvision")
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise UserError("torchvision is not installed; 'pip install \"torchvision>=0.28,<0.29\"'") from None
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    # The import stopped half-way: remove its modules, or the next import would find them.
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}{SCHEMA}")
    _declared.append(library)
    return importlib.import_module("torchvision")
