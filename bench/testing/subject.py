"""A method under test, with its trained networks."""

from functools import cached_property

from bench.api import Method, Task
from bench.testing.check import NotApplicable, require
from bench.testing.comparison import Difference, against_crowd
from bench.testing.miniature import Crossing
from bench.testing.problems import LEARNING, ONE_STEP, PROBLEMS, SHORT, STACK, Cell, members_of, split_of, train
from bench.testing.second_device import require_same_hooks, second_device


class MethodSubject:
    """A method under test; networks that several checks need are trained once."""

    def __init__(self, plugin: Method) -> None:
        self.plugin = plugin

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks that the method does not skip."""
        return [p.task for p in PROBLEMS.values() if self.plugin.skip(p) is None]

    @cached_property
    def cells(self) -> list[Cell]:
        """The method trained on a problem of every task that it does not skip."""
        return [train(self.plugin, split_of(task), LEARNING, STACK) for task in self.tasks]

    @cached_property
    def alone(self) -> Cell:
        """The method trained for a few epochs in a stack of its own, on its first task."""
        return train(self.plugin, split_of(self.tasks[0]), SHORT, STACK)

    @cached_property
    def among_others(self) -> Difference:
        """How `alone` differs from the same networks trained among others."""
        return against_crowd(self.alone)

    @cached_property
    def draw_crossings(self) -> list[Crossing]:
        """What a draw on a second device copied and waited for; fails where the hooks do not work there."""
        device = second_device()
        members = [members_of(self.plugin, split_of(task), ONE_STEP)[1][0] for task in self.tasks]
        return [crossing for member in members for crossing in require_same_hooks(member, device)]

    @property
    def cell(self) -> Cell:
        """The first of the trained cells."""
        require(self.cells, "skip refuses regression and classification on rows of numbers; nothing can be checked")
        return self.cells[0]

    def only(self, task: Task) -> Cell:
        """Return the method trained for one task."""
        self.need(task)
        return next(cell for cell in self.cells if cell.split.task == task)

    def need(self, task: Task) -> None:
        """Raise NotApplicable if the method skips this task."""
        if reason := self.plugin.skip(PROBLEMS[task]):
            raise NotApplicable(f"it skips {task}: {reason}")
