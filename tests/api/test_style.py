"""The house style: the same look for the same method, and settings that do not leak."""

import ast
import io
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import matplotlib
import matplotlib.image
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from bench.api.style import (
    COLOURS,
    Look,
    declared_looks,
    dots,
    house_style,
    legend,
    look,
    panels,
    plain_logarithmic,
    plain_number,
    short,
    spread_out,
)
from bench.methods.mcni_fixed import MCNIFixed
from bench.plugins.describe import declared_look
from bench.plugins.registry import Registry
from bench.report.figures import draw_figure


def test_built_in_methods_look_different() -> None:
    registry = Registry()
    with declared_looks(partial(declared_look, registry)):
        looks = {name: look(name) for name in registry.plugins("method")}
    assert len(set(looks.values())) == len(looks) >= 20
    assert all(one.filled for one in looks.values())
    assert looks["mcni-fixed"] == MCNIFixed.look == Look("blue", "-", "^")


def test_a_look_depends_on_the_name_alone() -> None:
    before = look("my-own")
    for number in range(100):
        look(f"other-{number}")
    with declared_looks(partial(declared_look, Registry())):
        assert look("my-own") == before
    assert not before.filled  # no declared look is like it
    assert before.hex in COLOURS


def test_looks_of_built_in_methods_are_read_without_torch(python: Callable[[str], str]) -> None:
    code = (
        "import sys; from bench.plugins.describe import declared_look; from bench.plugins.registry import Registry\n"
        "registry = Registry(); names = registry.plugins('method')\n"
        "print({name: str(declared_look(registry, name)) for name in names}, 'torch' in sys.modules, sep='\\n')\n"
    )
    registry = Registry()
    loaded = {name: str(registry.load("method", name).look) for name in registry.plugins("method")}
    read, torch_is_loaded = python(code).splitlines()
    assert ast.literal_eval(read) == loaded
    assert torch_is_loaded == "False"


def test_declared_looks_are_forgotten_after_the_block() -> None:
    with declared_looks(lambda method: Look("red", ":", "h")):
        assert look("mcni-fixed") == Look("red", ":", "h")
    assert look("mcni-fixed") != Look("red", ":", "h")


@pytest.mark.parametrize("wrong", [("blu", "-", "o"), ("blue", "=", "o"), ("blue", "-", "O")])
def test_an_unknown_look_is_refused(wrong: tuple[str, str, str]) -> None:
    with pytest.raises(ValueError, match=r"Look: unknown (colour|line|marker)"):
        Look(*wrong)


def test_settings_are_as_before() -> None:
    before = dict(matplotlib.rcParams)
    with house_style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 9])
def test_as_many_panels_as_asked(count: int) -> None:
    figure, axes = panels(count)
    assert len(axes) == count
    assert sum(axis.axison for axis in figure.axes) == count


def test_above_an_empty_place_a_shared_axis_has_its_numbers() -> None:
    figure, axes = panels(5, most=2, sharex=True)
    figure.draw_without_rendering()
    shown = [any(label.get_visible() for label in axis.get_xticklabels()) for axis in axes]
    assert shown == [False, False, False, True, True]


def test_names_in_figures_are_short_and_no_mathematics() -> None:
    assert len(short("x" * 500)) == 26
    figure = Figure()
    figure.subplots().set_title(short("a$\\frac{"))
    figure.savefig(io.BytesIO(), format="png")


def test_a_drawing_in_a_page_has_text_variables_and_no_foreign_names() -> None:
    with house_style():
        figure, (axis,) = panels(1)
        axis.plot([0, 1], [0, 1], color=COLOURS[0])
        axis.set_title('<script>"quoted"</script> 🙂 שלום')
    image = draw_figure(figure, "one")
    assert image.png.startswith(b"\x89PNG")
    assert b"http://www.w3.org/2000/svg" in image.svg
    page = image.inline
    assert "http" not in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "🙂 שלום" in page
    assert "var(--c0)" in page
    assert COLOURS[0] not in page
    assert all(identity.startswith("one-") for identity in re.findall(r' id="([^"]+)"', page))
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', page))
    assert referred == set(re.findall(r' id="([^"]+)"', page))


def test_the_same_figure_gives_the_same_file() -> None:
    def made() -> bytes:
        with house_style():
            figure, (axis,) = panels(1)
            axis.plot([0, 1])
        return draw_figure(figure, "same").svg

    assert made() == made()


def test_a_layout_solved_once_gives_the_image_of_matplotlib_itself() -> None:
    """The unit of the y-axis, 1e8, is written above it and moves the title away from its default place."""

    def figure() -> Figure:
        with house_style():
            figure, axes = panels(2)
            for axis in axes:
                axis.plot([0, 3e8])
                axis.set_title("A title above the unit of the axis")
        return figure

    plain, own = io.BytesIO(), draw_figure(figure(), "own").png
    figure().savefig(plain, format="png", dpi=144, metadata={"Software": None})
    assert own == plain.getvalue()


@given(st.lists(st.floats(-0.5, 1.5), max_size=12), st.floats(0.01, 0.2))
def test_labels_keep_their_order_and_distance(places: list[float], gap: float) -> None:
    moved = spread_out(sorted(places), gap)
    assert len(moved) == len(places)
    assert all(b - a >= gap - 1e-9 for a, b in pairwise(moved))
    if len(places) * gap < 1:
        assert all(-1e-9 <= place <= 1 + 1e-9 for place in moved)
    apart = [0.2 * number for number in range(4)]
    assert spread_out(apart, 0.1) == pytest.approx(apart)  # where nothing overlaps nothing moves


def test_a_legend_of_twenty_long_names_is_inside_and_takes_no_room_from_the_panels() -> None:
    def panel_height(methods: int) -> float:
        with house_style():
            figure, (axis,) = panels(1)
            legend(figure, [f"method-with-a-long-name-{number}" for number in range(methods)])
            figure.draw_without_rendering()
        (box,) = (one.get_window_extent() for one in figure.legends)
        width = figure.get_figwidth() * figure.dpi
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        return float(axis.get_window_extent().height / figure.dpi)

    assert panel_height(20) == pytest.approx(panel_height(1), abs=0.25)


@pytest.mark.parametrize(("value", "text"), [(20000.0, "20,000"), (0.0005, "0.0005"), (2e-5, "0.00002"), (1.0, "1")])
def test_numbers_of_logarithmic_axes_are_plain(value: float, text: str) -> None:
    assert plain_number(value) == text


def test_dots_are_one_path_with_every_point_in_both_kinds_of_file() -> None:
    x, y = np.meshgrid(np.arange(8.0), np.arange(8.0))
    figure, (axes,) = panels(1)
    dots(axes, x.ravel(), y.ravel(), 4.0, label="observed", color="black")
    axes.set_axis_off()
    image = draw_figure(figure, "dots")
    assert max(path.count("M") for path in re.findall(r' d="([^"]*)"', image.svg.decode())) == 64
    pixels = matplotlib.image.imread(io.BytesIO(image.png))[..., 0]
    dark = pixels < 0.5
    columns, rows = (np.flatnonzero(np.diff(dark.any(axis=axis).astype(int)) == 1) for axis in (0, 1))
    assert len(columns) == len(rows) == 8
    assert 64 * 4 < dark.sum() < 64 * 200


@pytest.mark.parametrize(("low", "high"), [(0.98, 1.2), (0.5, 1.9), (3.1, 4.9), (0.9, 5.1), (1, 1000)])
def test_a_logarithmic_axis_has_several_numbers_whatever_its_range(low: float, high: float) -> None:
    """An axis from 0.98 to 1.2 had the number 1 alone."""
    figure = Figure()
    axes = figure.subplots()
    axes.plot([low, high], [1, 2])
    plain_logarithmic(axes, x=True)
    shown = [place for place in axes.get_xticks() if axes.get_xlim()[0] <= place <= axes.get_xlim()[1]]
    assert len(shown) >= 3


def test_what_the_house_does_not_set_otherwise_is_seaborns_style() -> None:
    """It is not imported for it: that took longer than all statistics of a report of few methods."""
    import seaborn

    theirs = {**seaborn.axes_style("whitegrid"), **seaborn.plotting_context("paper")}
    with house_style():
        ours = {name: matplotlib.rcParams[name] for name in theirs}
    own = {name for name in theirs if ours[name] != (pytest.approx(v) if isinstance(v := theirs[name], float) else v)}
    sizes = {"font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize"}
    colours = {"text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor", "grid.color"}
    assert own == sizes | colours | {
        *("axes.facecolor", "figure.facecolor", "patch.edgecolor", "axes.spines.top", "axes.spines.right"),
        *("grid.linewidth", "axes.linewidth", "image.cmap"),
    }
