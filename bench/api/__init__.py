"""Everything a plug-in author imports: `from bench.api import Method, Net, Batch, Tape` (docs/api.md lists all names).

`__init__.pyi` lists the module of each name. It is read here and by type checkers, and a module is imported when
one of its names is first used: authors of datasets and reports do not load torch.
"""

import ast
from importlib import import_module
from importlib.resources import files
from typing import Any

from bench.errors import unknown_name

_STUB = ast.parse((files(__name__) / "__init__.pyi").read_text("utf-8"))
_HOME = {name.name: node.module for node in _STUB.body if isinstance(node, ast.ImportFrom) for name in node.names}
__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(str(unknown_name("name", name, __all__, "bench.api")))
    home = str(_HOME[name])
    if home in ("bench", "bench.api"):  # a module or a package that is handed on as a whole
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
