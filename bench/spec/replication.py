"""How the repeats of an experiment on one dataset are related: the dataset declares it, every cell records it."""

from typing import Literal, get_args

from bench.errors import UserError

Replication = Literal["independent", "splits", "seeds"]


def check_replication(declared: object) -> None:
    """Raise UserError if a dataset declares anything else."""
    if declared not in get_args(Replication):
        known = ", ".join(repr(kind) for kind in get_args(Replication))
        raise UserError(f"repeats = {declared!r}: expected one of {known}")
