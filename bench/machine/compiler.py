"""The C++ compiler of this machine, if it has one."""

import shutil


def cpp_compiler() -> str | None:
    """Return the path of a C++ compiler."""
    return next(filter(None, map(shutil.which, ("g++", "clang++", "c++"))), None)
