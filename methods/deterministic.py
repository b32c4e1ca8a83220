"""Deterministic: one trained network, one function.

    q(w) is a point: f(x) = f(x; w)

It has no uncertainty of its own in regression; in classification its softmax is the usual baseline, and is often
overconfident: Guo, Pleiss, Sun and Weinberger 2017, "On Calibration of Modern Neural Networks", arXiv:1706.04599.
"""

from dataclasses import dataclass

from bench.api import Look, Method


@dataclass(frozen=True)
class Deterministic(Method):
    """One network, trained as usual."""

    look = Look("grey", "-", "o")
    spread = "aleatoric"  # it is one function, without any variance of draws
