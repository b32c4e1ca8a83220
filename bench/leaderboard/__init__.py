"""The leaderboard: stored results as a static site, with intervals, tests and provenance.

`collect` reads a store, `document` is the machine-readable form (schema.json, docs/leaderboard.md), `site` the pages.
"""

from bench.leaderboard.collect import Leaderboard, collect

__all__ = ["Leaderboard", "collect"]
