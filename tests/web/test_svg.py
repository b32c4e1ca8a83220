import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.web.numbers import decimal_places, format_number
from bench.web.svg import EDGE, WIDTH, draw_interval, fit_axis, tick_text

NUMBER = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(NUMBER, st.floats(0, 1e3), st.floats(0, 1e3)), min_size=1, max_size=8))
@example([(1.0, 6e-8, 0.0)])
def test_everything_is_drawn_within_the_picture(rows: list[tuple[float, float, float]]) -> None:
    triples = [(middle, middle - below, middle + above) for middle, below, above in rows]
    on = fit_axis(triples)
    assert on is not None
    for triple in triples:
        places = [float(x) for x in re.findall(r"[MHL](-?[0-9.]+)", str(draw_interval(on, *triple)))]
        assert places
        assert all(0 <= x <= WIDTH for x in places)
    assert 0 < len(on.ticks) <= 6
    texts = [tick_text(tick, on) for tick in on.ticks]
    assert len(set(texts)) == len(texts) or max(map(abs, on.ticks)) >= 1e5


@pytest.mark.slow
def test_places_are_proportional() -> None:
    on = fit_axis([(0.0, 0.0, 10.0)])
    assert on is not None
    assert (on.x(0.0), on.x(5.0), on.x(10.0)) == (EDGE, WIDTH / 2, WIDTH - EDGE)


def test_a_method_far_out_is_an_arrow_and_the_others_keep_their_room() -> None:
    usual = [(1.0 + n / 10, 0.9 + n / 10, 1.1 + n / 10) for n in range(6)]
    on = fit_axis([*usual, (1000.0, 990.0, 1010.0)])
    assert on is not None
    assert on.clipped
    assert on.high < 3
    assert on.beyond(1000.0) == 1
    assert 'class="a m"' in draw_interval(on, 1000.0, 990.0, 1010.0)
    assert 'class="m"' in draw_interval(on, *usual[0])


def test_nothing_to_draw() -> None:
    assert fit_axis([(math.nan, math.nan, math.nan)]) is None
    on = fit_axis([(1.0, math.nan, math.nan)])
    assert on is not None
    assert draw_interval(on, math.nan, math.nan, math.nan) == ""


@pytest.mark.parametrize(
    ("value", "width", "text"),
    [
        (0.43219, 0.04, "0.432"),
        (57.2752, 14.0, "57.3"),
        (12345.6, 2000.0, "12346"),
        (-0.0001, 0.1, "0.000"),
        (2.5e7, 1.0, "2.50e+07"),
        (math.nan, 1.0, "–"),
        (math.inf, 1.0, "–"),
    ],
)
def test_a_number_has_the_digits_its_interval_leaves(value: float, width: float, text: str) -> None:
    assert format_number(value, decimal_places([(value, value - width / 2, value + width / 2)])) == text
