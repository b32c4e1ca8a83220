"""The generalised Gauss-Newton matrix of a trained network's loss, in the structures that Laplace's method uses.

    H = sum_n J_n^T L_n J_n,   J = d f / d w,   L = diag(p) - p p^T (classification) or 1 (regression, unit noise)

L = R R^T, so H is a sum of outer products of the backpropagated columns of R. Linear and convolutional layers are
treated; whatever else has parameters (batch norm) stays at its trained value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bench.api import Batch, Net

ROWS = 100  # of one pass: the patches of a convolution's inputs are nine times its images


@dataclass(frozen=True)
class LayerPass:
    """One layer in one pass: inputs `[rows, fan_in, places]` and, for one column of R, `[rows, units, places]`."""

    prefix: str
    inputs: Tensor
    gradient: Tensor


def treated(module: nn.Module) -> dict[str, nn.Linear | nn.Conv2d]:
    """Return the layers that have a curvature, by the prefix of their parameters' names."""
    parts = module.named_modules()
    return {f"{n}." if n else "": layer for n, layer in parts if isinstance(layer, nn.Linear | nn.Conv2d)}


def passes(net: Net, batch: Batch, layers: Mapping[str, nn.Linear | nn.Conv2d]) -> Iterator[list[LayerPass]]:
    """Yield what the layers see, for each chunk of the rows and each column of R."""
    tracked = replace(net, params={name: p.detach().requires_grad_() for name, p in net.params.items()})
    seen: dict[str, tuple[Tensor, Tensor]] = {}  # inputs and outputs of each layer
    hooks = [
        layer.register_forward_hook(lambda m, x, outputs, prefix=prefix: seen.update({prefix: (x[0], outputs)}))
        for prefix, layer in layers.items()
    ]
    try:
        for x in batch.x.split(ROWS):
            outputs = tracked(x)
            inputs = {prefix: _columns(layers[prefix], given.detach()) for prefix, (given, _) in seen.items()}
            ends = [outputs_of_layer for _, outputs_of_layer in seen.values()]
            for column in _root(batch, outputs.detach()).unbind(-1):
                gradients = torch.autograd.grad(outputs, ends, column, retain_graph=True)
                pairs = zip(seen, gradients, strict=True)
                yield [LayerPass(prefix, inputs[prefix], g.reshape(*g.shape[:2], -1)) for prefix, g in pairs]
    finally:
        for hook in hooks:
            hook.remove()


def diagonal(net: Net, batch: Batch) -> dict[str, Tensor]:
    """Return the diagonal of H by the names of the parameters."""
    total: dict[str, Tensor] = {}
    for layers in passes(net, batch, treated(net.module)):
        for layer in layers:
            weight = torch.einsum("nop,nip->noi", layer.gradient, layer.inputs)
            for kind, gradient in (("weight", weight), ("bias", layer.gradient.sum(-1))):
                if (name := layer.prefix + kind) in net.params:
                    part = gradient.double().square().sum(0).reshape(net.params[name].shape)
                    total[name] = total[name] + part if name in total else part
    return total


def kronecker(net: Net, batch: Batch) -> dict[str, tuple[Tensor, ...]]:
    """Return for each weight the factors (G, A) of H ~ G x A, and for each bias its own block (G,).

    A is the mean over rows of the inputs' outer products, summed over the places of a convolution, G the sum over
    rows of the gradients', their mean over places (Grosse and Martens 2016, arXiv:1602.01407).
    """
    total: dict[str, list[Tensor]] = {}
    for layers in passes(net, batch, treated(net.module)):
        for layer in layers:
            g, a = layer.gradient.double(), layer.inputs.double()
            places = g.shape[-1]
            found = {"weight": [torch.einsum("nop,nqp->oq", g, g) / places, torch.einsum("nip,njp->ij", a, a)]}
            found["bias"] = [torch.einsum("no,nq->oq", g.sum(-1), g.sum(-1))]
            for kind, factors in found.items():
                if (name := layer.prefix + kind) in net.params:
                    old = total.get(name, [torch.zeros_like(f) for f in factors])
                    total[name] = [before + factor for before, factor in zip(old, factors, strict=True)]
    # Every column of R saw all inputs once more.
    columns = 1 if batch.task == "regression" else net(batch.x[:1]).shape[-1]
    return {
        name: (factors[0], factors[1] / (columns * len(batch.x))) if len(factors) == 2 else (factors[0],)
        for name, factors in total.items()
    }


def last_layer(net: Net, batch: Batch) -> tuple[str, Tensor]:
    """Return the last linear layer's prefix and its whole block of H, over (units, inputs and bias)."""
    linear = {prefix: layer for prefix, layer in treated(net.module).items() if isinstance(layer, nn.Linear)}
    prefix = list(linear)[-1]
    total: Tensor | None = None
    for (last,) in passes(net, batch, {prefix: linear[prefix]}):
        features = last.inputs[..., 0].double()
        if f"{prefix}bias" in net.params:
            features = torch.cat([features, features.new_ones(len(features), 1)], 1)
        jacobian = torch.einsum("no,ni->noi", last.gradient[..., 0].double(), features).flatten(1)
        part = jacobian.T @ jacobian
        total = part if total is None else total + part
    assert total is not None
    return prefix, total


def _root(batch: Batch, outputs: Tensor) -> Tensor:
    """Return R `[rows, outputs, columns]` with R R^T = L."""
    if batch.task == "regression":
        return torch.ones_like(outputs).unsqueeze(-1)
    p = outputs.softmax(-1)
    return torch.diag_embed(p.sqrt()) - p.unsqueeze(-1) * p.sqrt().unsqueeze(-2)


def _columns(layer: nn.Linear | nn.Conv2d, given: Tensor) -> Tensor:
    """Return a layer's inputs as `[rows, fan_in, places]`."""
    if isinstance(layer, nn.Linear):
        return given.unsqueeze(-1)
    if isinstance(layer.padding, str) or layer.groups != 1:
        raise ValueError("laplace treats convolutions with numeric padding and one group")
    return F.unfold(given, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
