"""Temperature scaling: the logits of a trained network divided by one number, tuned on validation rows.

    p(y | x) = softmax(f(x) / T),   T = argmin of the validation cross-entropy

Guo, Pleiss, Sun and Weinberger 2017, "On Calibration of Modern Neural Networks", arXiv:1706.04599. The order of the
classes stays, so accuracy does, too. Classification only; T = 1 where a suite holds no validation rows out.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bench.api import Batch, Look, Method, Net, Problem, Tape

ROWS = 500  # of one pass: activations of images are large
RANGE = (0.05, 20.0)  # of T: where all validation rows are right the best T is 0


@dataclass(frozen=True)
class TemperatureScaling(Method):
    """One network with calibrated logits."""

    look = Look("grey", ":", "D")

    def skip(self, problem: Problem) -> str | None:
        """Return why numbers have no temperature."""
        return None if problem.task == "classification" else "temperature scaling divides logits; regression has none"

    def finish(self, net: Net, train: Batch, validation: Batch | None, tape: Tape) -> dict[str, Tensor]:
        """Return the temperature."""
        if validation is None:
            return {"temperature": torch.ones((), device=train.x.device)}
        with torch.no_grad():
            logits = torch.cat([net(x) for x in validation.x.split(ROWS)]).double()
            low, high = 1 / RANGE[1], 1 / RANGE[0]
            # The loss is convex in 1/T, so its slope changes sign once: bisect it.
            right = logits.gather(-1, validation.y.unsqueeze(-1)).squeeze(-1)
            for _ in range(60):
                middle = (low + high) / 2
                expected = ((middle * logits).softmax(-1) * logits).sum(-1)
                low, high = (low, middle) if float((expected - right).mean()) > 0 else (middle, high)
        return {"temperature": torch.tensor(2 / (low + high), device=train.x.device)}

    def draw(self, net: Net, x: Tensor, tape: Tape) -> Tensor:
        """Return the scaled logits."""
        return net(x) / net.memory["temperature"]
