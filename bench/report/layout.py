"""The layout of a figure, solved once for all its files, with every tick label measured once per place."""

import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

DOTS = 144  # of a PNG, an inch


def lay_out(figure: "Figure") -> None:
    """Solve the layout once for both files; a figure that has an engine is drawn once more by each `savefig`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    engine = figure.get_layout_engine()
    if engine is not None:
        FigureCanvasAgg(figure)  # keeps its renderer; a canvas without a backend creates one at every call
        figure.set_dpi(DOTS)
        engine.execute(figure)
        figure.set_layout_engine(None)
        for axes in figure.axes:
            # Titles stay where the layout put them; each file would measure all tick labels again to place them.
            vars(axes)["_autotitlepos"] = False


def keep_labels(figure: "Figure") -> None:
    """Keep the labels of axes where they were drawn; the next file would measure all tick labels again."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            place = axis.label.get_transform().transform(axis.label.get_position())
            axis.set_label_coords(*axes.transAxes.inverted().transform(place))


@contextmanager
def ticks_measured_once(figure: "Figure") -> Iterator[None]:
    """Compute the ticks of an axis and the extents of their labels only where its limits, place or resolution changed.

    matplotlib computes them anew for each spine, title and label that stands beside them.
    """
    with ExitStack() as added:
        for axes in figure.axes:
            for axis in (axes.xaxis, axes.yaxis):
                for name in ("_update_ticks", "_get_ticklabel_bboxes"):
                    if hasattr(type(axis), name) and name not in vars(axis):
                        vars(axis)[name] = _once_per_place(axis, getattr(axis, name))
                        added.callback(vars(axis).pop, name)
        yield


def _once_per_place(axis: "Axis", compute: Callable[..., Any]) -> Callable[..., Any]:
    place: tuple[float, ...] = ()
    arguments: tuple[Any, ...] = ()
    value: Any = None

    def computed(*of: Any) -> Any:
        nonlocal place, arguments, value
        here = (*axis.get_view_interval(), *axis.axes.bbox.bounds, axis.axes.figure.dpi)
        # The same objects: the ticks that the last call returned, and the renderer.
        if here != place or not all(map(operator.is_, of, arguments)):
            value, place, arguments = compute(*of), here, of
        return value

    return computed
