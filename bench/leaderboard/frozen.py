"""Frozen versions of boards: methods that enter later do not move the places of those that were there.

A published `leaderboard.json` is a version. A later site that continues it tests only the methods that had a place in
it against each other, as then; methods that entered since are tested against the baseline, in a family of their own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.leaderboard.boards import Board
from bench.machine.files import read_document

Place = tuple[str, str | None, str, str | None]  # suite, dataset, metric, device


@dataclass(frozen=True)
class Frozen:
    """The version that a site continues: places of methods by board, and the datasets of boards over datasets."""

    version: str
    places: Mapping[Place, Mapping[str, int]] = field(default_factory=dict)
    datasets: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)

    def changed(self, board: Board) -> list[str]:
        """Return a note where methods have other places than in the frozen version."""
        then = self.places.get(place_of(board), {})
        now = {entry.method: entry.place for entry in board.entries}
        moved = [
            f"{method} ({place}, now {now.get(method) or 'none'})"
            for method, place in then.items()
            if now.get(method) != place
        ]
        if not moved:
            return []
        return [f"places differ from version {self.version}, because results changed since: {', '.join(moved)}"]


def place_of(board: Board) -> Place:
    """Return what identifies a board in all versions."""
    return board.suite, board.dataset, board.metric, board.device


def read_frozen(path: str | Path) -> Frozen:
    """Read the version that a `leaderboard.json` published."""
    try:
        content: dict[str, Any] = json.loads(read_document(Path(path)))
        places, datasets = {}, {}
        for board in content["boards"]:
            place = (board["suite"], board["dataset"], board["metric"], board["device"])
            places[place] = {e["method"]: e["place"] for e in board["entries"] if e["place"] is not None}
            datasets[place] = tuple(board["datasets"])
        return Frozen(str(content.get("version") or content["updated"]), places, datasets)
    except OSError as error:
        raise UserError(f"--frozen {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(
            f"--frozen {path}: no published leaderboard; give the leaderboard.json that 'uqbench leaderboard' wrote"
        ) from None
