"""One slot of a stack: the state on the host of the member that trains in it."""

import math
from collections.abc import Hashable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from bench.training.member import Member
from bench.training.streams import Stream


class Slot:
    """The state of one member in training besides its tensors: random streams, epochs and losses."""

    def __init__(self, number: int, member: Member, offset: int, module: nn.Module) -> None:
        self.number, self.member, self.module = number, member, module
        self.epoch = 0
        device = member.rows.x.device
        self.shuffles = Stream(member.seed, "shuffle", device)
        self.noise = Stream(member.seed, "noise", device)
        self.train = member.rows.train + offset
        self.validation = member.rows.validation + offset
        self.best = math.inf
        self.since_best = 0
        self.history: list[tuple[float, float]] = []
        self.rows = len(self.train)

    def state(self) -> dict[str, Tensor]:
        """Return what the next epoch depends on besides the network's tensors, for a checkpoint."""
        return {
            "history": torch.tensor(self.history, dtype=torch.float64).view(-1, 2),
            "best": torch.tensor([self.best, self.since_best], dtype=torch.float64),
            "shuffles": self.shuffles.state,
            "noise": self.noise.state,
        }

    def resume(self, state: dict[str, Tensor]) -> None:
        """Restore what `state` returned."""
        self.history = [(loss, validation) for loss, validation in state["history"].tolist()]
        self.epoch = len(self.history)
        self.best, since_best = state["best"].tolist()
        self.since_best = int(since_best)
        self.shuffles.restore(state["shuffles"])
        self.noise.restore(state["noise"])

    def evaluates(self, epoch: int) -> bool:
        """Return whether the validation loss is evaluated after this epoch (from 1): every k epochs, and at the end."""
        training = self.member.training
        since_first = epoch - (training.evaluate_from or training.evaluate_every)
        return (since_first >= 0 and since_first % training.evaluate_every == 0) or epoch >= training.epochs

    def record(self, loss: float, validation: float | None) -> bool:
        """Record the losses of an epoch; return whether the validation loss is the best so far; None: not evaluated."""
        self.epoch += 1
        self.since_best += validation is not None
        self.history.append((loss, math.nan if validation is None else validation))
        if validation is None or not validation < self.best:  # also if it is NaN
            return False
        self.best, self.since_best = validation, 0
        return True

    def end(self, validated: bool) -> Literal["", "ok", "diverged"]:
        """Return how the training has ended, or '' if it goes on; `validated`: with early stopping."""
        loss, validation = self.history[-1]
        if not math.isfinite(loss) or (validated and self.evaluates(self.epoch) and not math.isfinite(validation)):
            return "diverged"
        stopped = validated and self.since_best >= self.member.training.patience
        return "ok" if stopped or self.epoch >= self.member.training.epochs else ""


def judged_by_teams(slots: Sequence[Slot | None], losses: Sequence[float]) -> list[float]:
    """Return the validation losses by which slots are judged: those of a team by the mean, which none may miss."""
    teams: dict[Hashable, list[int]] = {}
    sizes: dict[Hashable, int] = {}
    for place, slot in enumerate(slots):
        if slot is not None and slot.member.team is not None:
            teams.setdefault(slot.member.team.key, []).append(place)
            sizes[slot.member.team.key] = slot.member.team.size
    judged = list(losses)
    for key, places in teams.items():
        if sizes[key] == 1:
            continue
        mean = sum(losses[place] for place in places) / len(places) if len(places) == sizes[key] else math.nan
        for place in places:
            judged[place] = mean
    return judged
