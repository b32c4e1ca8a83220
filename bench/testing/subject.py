"""A method under examination."""

from functools import cached_property

from bench.api import Method, Task
from bench.testing.check import NotApplicable, require
from bench.testing.comparison import Pair, against_crowd
from bench.testing.problems import LEARNING, PROBLEMS, SHORT, STACK, Cell, split_of, train


class MethodSubject:
    """A method under examination: what several checks look at is trained once."""

    def __init__(self, method: Method) -> None:
        self.method = method

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks that the method does not skip."""
        return [p.task for p in PROBLEMS.values() if self.method.skip(p) is None]

    @cached_property
    def cells(self) -> list[Cell]:
        """The method trained on a problem of every task that it does."""
        return [train(self.method, split_of(task), LEARNING, STACK) for task in self.tasks]

    @cached_property
    def alone(self) -> Cell:
        """The method trained a short while in a stack by itself, on its first task."""
        return train(self.method, split_of(self.tasks[0]), SHORT, STACK)

    @cached_property
    def among_others(self) -> Pair:
        """How that differs from the same network trained among others."""
        return against_crowd(self.alone)

    @property
    def cell(self) -> Cell:
        """The first of them."""
        require(self.cells, "skip refuses regression and classification on rows of numbers; nothing can be checked")
        return self.cells[0]

    def only(self, task: Task) -> Cell:
        """Return the method trained for one task."""
        self.need(task)
        return next(cell for cell in self.cells if cell.split.task == task)

    def need(self, task: Task) -> None:
        """End a check that is about a task which the method skips."""
        if reason := self.method.skip(PROBLEMS[task]):
            raise NotApplicable(f"it skips {task}: {reason}")
