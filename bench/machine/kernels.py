"""Kernels of our own in C++: compiled on the machine that uses them and kept beside the compiled graphs."""

import contextlib
import ctypes
import functools
import hashlib
import subprocess
import tempfile
from pathlib import Path

from bench.machine.compiled_cache import compiled_folder
from bench.machine.compiler import cpp_compiler
from bench.machine.environment import cpu_features
from bench.machine.files import write_whole

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")


def load_kernels(source: Path, *flags: str, compiling: bool = True) -> ctypes.CDLL | None:
    """Return the compiled kernels of a file; None where they cannot be compiled, or are not and shall not be."""
    path = compiled_folder() / "kernels" / f"{kernels_name(source, *flags)}.so"
    try:
        if path.is_file():
            with contextlib.suppress(OSError):  # damaged: it is compiled again
                return ctypes.CDLL(str(path))
            path.unlink()
        return _compile(source, flags, path) if compiling else None
    except OSError:  # a full disk, or a folder from which nothing can be executed
        return None


@functools.cache
def kernels_name(source: Path, *flags: str) -> str:
    """Return a name for the kernels of a file on this processor."""
    return hashlib.blake2b(repr((source.read_bytes(), cpu_features(), flags)).encode(), digest_size=16).hexdigest()


def _compile(source: Path, flags: tuple[str, ...], path: Path) -> ctypes.CDLL | None:
    compiler = cpp_compiler()
    if compiler is None:
        return None
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "kernels.so"
        command = [compiler, *FLAGS, *flags, "-o", str(made), str(source)]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return None
        write_whole(path, lambda file: file.write(made.read_bytes()))
    return ctypes.CDLL(str(path))
