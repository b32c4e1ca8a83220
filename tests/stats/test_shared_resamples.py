"""Draws that are looked up are those that would have been drawn, and the generator moves on alike."""

import numpy as np
import pytest

from bench.stats import shared_resamples as draws
from bench.stats.shared_resamples import draw_cached


def _draw(generator: np.random.Generator) -> np.ndarray:
    return generator.normal(size=(7, 3))


def test_a_generator_in_the_same_state_draws_the_same_and_goes_on_alike() -> None:
    plain, first, second = (np.random.default_rng(5) for _ in range(3))
    for _ in range(3):
        wanted = _draw(plain)
        np.testing.assert_array_equal(draw_cached(first, "normal", _draw), wanted)
        np.testing.assert_array_equal(draw_cached(second, "normal", _draw), wanted)
    assert plain.random() == first.random() == second.random()


def test_it_is_drawn_once_for_each_state_and_kind() -> None:
    calls = []

    def draw(generator: np.random.Generator) -> np.ndarray:
        calls.append(1)
        return _draw(generator)

    for seed, what in [(11, "a"), (11, "a"), (12, "a"), (11, "b"), (11, "b")]:
        draw_cached(np.random.default_rng(seed), what, draw)
    assert len(calls) == 3


def test_what_is_kept_cannot_be_written_to_and_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "MOST_BYTES", 3 * 7 * 3 * 8)
    kept = [draw_cached(np.random.default_rng(seed), "limit", _draw) for seed in range(9)]
    with pytest.raises(ValueError, match="read-only"):
        kept[0][0] = 1.0
    assert len(draws._cache) == 3


def test_other_generators_draw_for_themselves() -> None:
    one, two = (np.random.Generator(np.random.MT19937(3)) for _ in range(2))
    np.testing.assert_array_equal(draw_cached(one, "other", _draw), _draw(two))
    assert one.random() == two.random()
