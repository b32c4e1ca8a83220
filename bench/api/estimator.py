"""An estimator is anything that fits rows and predicts distributions: scikit-learn, another library, an own loop.

It is plain Python: no `vmap`, no tape, no hooks. Each of its cells runs in a fresh process. Nothing here loads torch.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bench.api.base_method import BaseMethod
from bench.api.dataset import Array, Problem
from bench.api.law import Law
from bench.metrics import Prediction

if TYPE_CHECKING:
    from bench.api.method import NewNetwork


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with their targets in training units: features and regression targets standardised, classes from 0."""

    problem: Problem
    x: Array  # [rows, *problem.inputs], float32
    y: Array  # [rows]: float32, or int64 for classes
    new_network: "NewNetwork"  # `new_network(outputs)` makes the suite's network, as network methods train it
    law: Law | None = None  # of the targets, in training units, where the dataset states it (for oracles)

    def __len__(self) -> int:
        return len(self.x)


class Estimator(BaseMethod):
    """A method with a training of its own.

    Subclass it as a frozen dataclass whose fields are the options. The suite's table `[training]` does not apply to it;
    its `validation`, `calibration`, scaling, draws and probe do.

    The global generators of random, numpy and torch are seeded before `fit` and before `predict`. Code that takes a
    seed gets it as an argument: `seed` is from 0 to 2**32 - 1, as `random_state` of scikit-learn requires.
    """

    alone: ClassVar[bool] = True
    threads: ClassVar[int] = 1  # of BLAS, OpenMP and torch; 0: all of its worker, then bits depend on their number

    def fit(self, train: Examples, validation: Examples | None, seed: int) -> Any:
        """Return the state after the fit: any picklable object that holds all that `predict` needs.

        `validation` has rows to stop or tune by; None if the suite holds out none, or refits on all rows.
        """
        raise NotImplementedError

    def predict(self, state: Any, x: Array, draws: int, seed: int) -> Prediction:
        """Return the prediction at rows `[rows, *inputs]`, in training units.

        It has at most `draws` draws; draw t is the same for any T. A row's prediction does not depend on other rows.
        """
        raise NotImplementedError
