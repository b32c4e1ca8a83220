"""Lets a compiled step run in a process that never loads torch's compiler.

What the compiler writes is a Python file that imports most of it again, which takes about a second beyond what tracing
imports. All that the file needs of it are its kernels, which are extension modules in the same folder, and a few
products of matrices. So it is kept with another head, that loads them from here.
"""

import importlib.machinery
import importlib.util
import os
import re
from pathlib import Path
from types import BuiltinFunctionType, ModuleType
from typing import Any

import torch

_DEFINED = re.compile(r"^(\w+) = async_compile\.cpp_pybinding\(\[.*?\], r'''.*?'''\)$", re.DOTALL | re.MULTILINE)
_COMPILER = re.compile(r"^from torch\._inductor\S* import .*$\n", re.MULTILINE)
_ENDED = "async_compile = AsyncCompile()\n", "async_compile.wait(globals())\n", "del async_compile\n"
_UNUSED = re.compile(r"^def get_args\(.*\Z", re.DOTALL | re.MULTILINE)  # and what follows: the compiler's own timings
# What the compiler calls its matrix products; each is torch's function of the same name.
_PRODUCTS = {"addmm", "baddbmm", "bmm", "convolution", "mm"}
_OF_THE_COMPILER = re.compile(r"\b(?:run_intermediate_hooks|maybe_profile|align|async_compile)\b")


def without_compiler(source: str, names: dict[str, Any], folder: Path) -> str:
    """Return the source of a compiled step with kernels that are loaded from files; as it is where that cannot be.

    `names` are those of the module that was made of it, and the files are below `folder`.
    """

    def loaded(match: re.Match[str]) -> str:
        kernel = names[match[1]]
        assert isinstance(kernel, BuiltinFunctionType)
        path = Path(str(kernel.__self__.__file__))  # type: ignore[attr-defined]  # the module of the kernel
        return f"{match[1]} = load_kernel({path.relative_to(folder).as_posix()!r}, __file__)"

    try:
        light = _DEFINED.sub(loaded, _UNUSED.sub("", source))
    except (AssertionError, AttributeError, KeyError, ValueError):  # kernels of another kind, or kept elsewhere
        return source
    for line in _ENDED:
        light = light.replace(line, "", 1)
    light = _COMPILER.sub("", light)
    products = set(re.findall(r"\bextern_kernels\.(\w+)", light))
    if _OF_THE_COMPILER.search(light) or not products <= _PRODUCTS:
        return source
    return f"from bench.training.compiled_kernels import load_kernel\nimport torch as extern_kernels\n{light}"


def load_step(path: Path) -> Any:
    """Return the function `call` of a file."""
    spec = importlib.util.spec_from_file_location(f"uqbench_step_{path.stem}", path)
    assert spec is not None
    return _module(spec).call


def load_kernel(name: str, file: str) -> Any:
    """Return the kernel of this file name, which is kept beside the folder of the step that calls it."""
    path = Path(file).parent.parent / name
    # The kernel finds torch's function that gives the memory of a tensor by this variable.
    os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(
        torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]
    )
    loader = importlib.machinery.ExtensionFileLoader(f"{path.stem}.kernel", str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None
    kernel = _module(spec).kernel
    os.utime(path)  # what was used longest ago is removed first
    return kernel


def _module(spec: importlib.machinery.ModuleSpec) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    return module
