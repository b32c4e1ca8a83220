"""The distribution function of the standard normal, several times faster than scipy's, and what is made of it.

PyTorch computes the error function with the vector instructions of the processor: about 3 ns per value, where scipy
takes 17 ns. Importing it takes a second, so that little work is better done by scipy: `without_torch`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from bench.metrics.arrays import FloatArray

ROOT_TWO_PI = math.sqrt(2 * math.pi)


def normal_cdf(z: FloatArray) -> FloatArray:
    """Return Phi(z) with an absolute error of 1e-16; where small values must have their digits, take scipy's `ndtr`."""
    values = _erf(z * math.sqrt(0.5))
    values += 1.0
    values *= 0.5
    return values


_without_torch: ContextVar[bool] = ContextVar("without_torch", default=False)


@contextmanager
def without_torch(little: bool = True) -> Iterator[None]:
    """Let scipy compute inside the block, where there is little to compute; the two differ in the last bit."""
    token = _without_torch.set(little)
    try:
        yield
    finally:
        _without_torch.reset(token)


def _erf(z: FloatArray) -> FloatArray:
    if _without_torch.get():
        from scipy.special import erf

        return np.asarray(erf(z))
    import torch  # here, because most commands compute no metric and should not wait for torch

    values: FloatArray = torch.erf(torch.from_numpy(np.ascontiguousarray(z))).numpy()
    return values


def ratio(distance: FloatArray, std: FloatArray) -> FloatArray:
    """Return distance / std; 0 for 0 / 0, so that a normal without width has the probability 1/2 at its mean."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z: FloatArray = distance / std
    if np.isnan(z).any():
        z[np.isnan(z)] = 0.0
    return z


def mean_distance(distance: FloatArray, std: FloatArray) -> FloatArray:
    """Return E|d + s Z| = d erf(z / sqrt 2) + 2 s phi(z), z = d / s, for a standard normal Z; |d| where s is 0."""
    z = ratio(distance, std)
    z *= math.sqrt(0.5)
    full = _erf(z)
    full *= distance
    with np.errstate(over="ignore"):
        np.square(z, out=z)
    np.negative(z, out=z)
    np.exp(z, out=z)
    z *= std
    z *= 2.0 / ROOT_TWO_PI
    full += z
    return full
