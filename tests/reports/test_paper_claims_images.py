"""Claims on images under noise: the level at which the predicted class flips, and the class that it flips to."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.fixtures.made_results import MadeResults

LEVELS = np.array([0.0, 0.1, 0.2, 0.3])


def image(first_wrong: int | None, rival: int = 9) -> Mapping[str, Any]:
    """The softmax outputs of one run, wrong from a level on (None: at no level)."""
    mean = np.where(np.arange(4) < (4 if first_wrong is None else first_wrong), 0.8, 0.3)
    outputs = np.stack([mean, 1 - mean], axis=-1)[:, None, :] + np.zeros((4, 5, 2))
    return {"levels": LEVELS, "softmax": outputs, "classes": np.array([8, rival])}


def flips(**runs: Sequence[int | None]) -> MadeResults:
    results = MadeResults()
    for method, own in runs.items():
        results.add(method, arrays=[image(first) for first in own], repeats="seeds")
    return results


FLIP = {"by": "signs", "derived": "flip", "metric": "first wrong level", "method": ["a"], "over": ["b"]}


def test_an_image_that_never_flips_is_beyond_the_highest_level() -> None:
    claim = {**FLIP, "kind": "better"}
    longer = flips(a=[None] * 8, b=[2] * 8).judged(claim)  # without values a would not take part
    assert (longer.verdict, "higher in 8" in longer.numbers) == ("reproduced", True)
    assert flips(a=[2] * 8, b=[None] * 8).judged(claim).verdict == "not reproduced"
    neither = flips(a=[None] * 8, b=[None] * 8).judged(claim)
    assert (neither.verdict, "both beyond the highest level in 8" in neither.numbers) == ("cannot be decided", True)


def test_equal_flip_levels() -> None:
    claim = {**FLIP, "kind": "same", "margin": 0.05}
    assert flips(a=[2] * 8, b=[2] * 8).judged(claim).verdict == "reproduced"
    assert flips(a=[None] * 8, b=[2] * 8).judged(claim).verdict == "not reproduced"
    assert flips(a=[None] * 8, b=[None] * 8).judged(claim).verdict == "cannot be decided"


def test_the_rival_class_of_most_runs() -> None:
    claim = {"kind": "most-runs", "by": "signs", "derived": "class", "class": 9, "metric": "class", "method": ["a"]}

    def runs(trucks: int, others: int, never: int) -> str:
        arrays = [image(2)] * trucks + [image(2, rival=0)] * others + [image(None)] * never
        return MadeResults().add("a", arrays=arrays, repeats="seeds").judged(claim).verdict

    assert runs(8, 0, 0) == "reproduced"
    assert runs(0, 8, 0) == "not reproduced"
    assert runs(6, 0, 6) == "cannot be decided"  # what never flips may be either


def test_runs_that_never_flip_are_not_like_one_that_flips() -> None:
    claim = {"kind": "one-run", "by": "signs", "method": ["a"], "derived": "flip", "values": {"x": 0.1}}
    assert MadeResults().add("a", arrays=[image(None)] * 41).judged(claim).verdict == "not reproduced"
