"""The page docs/networks.md: a card per built-in network, from its docstrings and options, with counted sizes.

python -m tools.network_page docs/networks.md
"""

import inspect

import torch
from torch import Tensor

from bench.api import Network, Problem
from bench.plugins.describe import options_of, paragraphs
from bench.plugins.registry import Registry
from bench.text_tables import markdown_table
from bench.training.flops import count_work
from bench.training.limits import FLOPS_PER_ROW_OF_A_LARGE_NETWORK
from bench.training.network_factory import network_factory
from tools.pages import built_in, write_page

INTRODUCTION = """# Networks

*Written by `python -m tools.network_page docs/networks.md` from the plug-ins in `bench/networks/`; edit those.*

A suite names the network that its methods train, with its options:

```toml
[network]
kind = "mlp"
hidden = [50, 50]
```

On the command line: `--set network.kind=residual-mlp --set network.width=100`; another kind leaves the options of the
first behind. Name, options, version and, for a file, the content of the network are part of every result's key.

Networks of your own: `uqbench new network NAME` writes one, [tutorial.md](tutorial.md) has one of a few lines,
`--plugin FILE` brings it to a run, and packages declare the entry point `bench.networks`. Any torch module will do.
Methods that put noise on hidden activations (`mc-dropout`, activation noise) reach them in one of two ways:

- `forward(x, hidden=unchanged)` passes every hidden activation through `hidden` before the next layer.
- In a module without that argument the `nn.Dropout` layers are these places. They drop nothing by themselves: the
  method says how much, and its random numbers are seeded. So a model of torchvision or torch works as it is.

A module with neither is refused with a message by those methods, and works with all others. Networks are trained in
stacks by `torch.func.vmap` unless they are large; one that `vmap` cannot take declares `stackable = False`.

*Hidden*: how many activations `hidden` sees. *Operations*: of the products of one row, in millions. Both are counted
for eight features and one output, and for images of 3 x 32 x 32 pixels and ten classes, with the default options.
"""

PROBLEMS = {"rows": Problem("regression", (8,), 1), "images": Problem("classification", (3, 32, 32), 10)}


def page(registry: Registry) -> str:
    """Return the page: a table of all built-in networks, then a card for each."""
    found = built_in(registry, "network")
    columns = ("name", "for", "parameters", "hidden", "operations", "trains")
    rows = []
    for name, (_, network) in found.items():
        for kind, problem in PROBLEMS.items():
            if network.skip(problem) is None:
                rows.append([f"[{name}](#{name})", kind, *sizes(network, problem)])
    cards = (card(name, *about) for name, about in found.items())
    return "\n".join([INTRODUCTION, *markdown_table(columns, rows), *cards])


def card(name: str, about: str, network: Network) -> str:
    """Return the card of one network."""
    first, _, rest = inspect.cleandoc(about).partition("\n")
    facts = [f"option {option.markdown()}" for option in options_of(network)]
    facts += [f"skips {kind}: {reason}" for kind, p in PROBLEMS.items() if (reason := network.skip(p))]
    if not network.stackable:
        facts.append("trains alone, never in a stack")
    facts += [f"fails the check `{check}`: {reason}" for check, reason in network.expected_failures.items()]
    body = "\n".join(f"- {fact}" for fact in facts)
    parts = [f"## {name}", first, inspect.getdoc(type(network)) or "", _fenced(rest.strip("\n")), body]
    return "\n" + "\n\n".join(part for part in parts if part)


def sizes(network: Network, problem: Problem) -> list[str]:
    """Return the number of parameters, of hidden activations and of operations, and how it trains."""
    module = network_factory(network, problem)(problem.outputs).eval()
    seen = []

    def look(h: Tensor) -> Tensor:
        seen.append(h)
        return h

    x = torch.zeros(1, *problem.inputs)
    flops = count_work(lambda: module(x, hidden=look))[1]
    alone = flops > FLOPS_PER_ROW_OF_A_LARGE_NETWORK or not network.stackable
    count = sum(p.numel() for p in module.parameters())
    return [f"{count:,}", str(len(seen)), _millions(flops), "alone" if alone else "in a stack"]


def _millions(count: float) -> str:
    return f"{count / 1e6:,.0f}" if count >= 1e7 else f"{count / 1e6:.2g}"


def _fenced(text: str) -> str:
    """Return a docstring's paragraphs with its equations as blocks of code."""
    return "\n\n".join(f"```text\n{part.text}\n```" if part.equation else part.text for part in paragraphs(text))


if __name__ == "__main__":
    write_page(__doc__, lambda: page(Registry()))
