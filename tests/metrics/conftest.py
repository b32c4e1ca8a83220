"""Independent libraries as oracles, imported with their own import-time warnings contained."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def oracle() -> Callable[[str], Any]:
    def load(module: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)

    return load


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)
