"""The page docs/methods.md: a card per built-in method, from its docstrings and attributes, with counted costs.

python -m tools.method_page docs/methods.md
"""

import inspect

from bench.api import BaseMethod, Method, Problem, Wrapper
from bench.plugins.describe import options_of, paragraphs
from bench.plugins.registry import Registry
from bench.testing.method_training import Cost, count_cost
from bench.testing.problems import Plain
from bench.text_tables import markdown_table
from tools.pages import built_in, write_page

INTRODUCTION = """# Methods

*Written by `python -m tools.method_page docs/methods.md` from the plug-ins in `methods/`; edit those.*

A method is a distribution over functions: prediction is `f(x; w_t)` with `w_t ~ q(w)`, `t = 1..T`. Each card gives
q(w), the source, the options (a suite sets them under `[methods.NAME]`), and the values worth searching.

Costs are counted, not timed, on a network of 16 hidden units. *Draw*: floating-point operations of the matrix products
of one draw, relative to one forward pass of the plain network. *Random numbers*: read by one draw, for its 60 rows
together. *Kept*: numbers stored for each trained network, relative to the plain network's parameters. *Networks*: how
many are trained for one cell. Estimators have no network whose work could be counted, wrappers those of the method that
they are around.

Every method passes the checks of `uqbench verify`, except for those that its card names, with the reason.
"""

SPREADS = {
    "level": "its spread is noise of a level that is an option, tuned or trained: it need not fall with more data",
    "aleatoric": "its spread is the noise of the data, or nothing: it does not fall with more data",
}
PROBLEMS = {
    "regression": Problem("regression", (2,), 1),
    "classification": Problem("classification", (2,), 3),
    "images": Problem("classification", (3, 32, 32), 10),
}


def page(registry: Registry) -> str:
    """Return the page: a table of all built-in methods, then a card for each."""
    found = built_in(registry, "method")
    columns = ("name", "tasks", "draw", "random numbers", "kept", "networks")
    rows = []
    for name, (_, method) in found.items():
        # Only the work of networks can be counted.
        draw, numbers, kept, networks = costs(method) if isinstance(method, Method) else ("–",) * 4
        tasks = ", ".join(task for task in ("regression", "classification") if method.skip(PROBLEMS[task]) is None)
        rows.append([f"[{name}](#{name})", tasks, draw, numbers, kept, networks])
    cards = (card(name, *about) for name, about in found.items())
    return "\n".join([INTRODUCTION, *markdown_table(columns, rows), *cards])


def card(name: str, about: str, method: BaseMethod) -> str:
    """Return the card of one method."""
    text = inspect.cleandoc(about)
    first, _, rest = text.partition("\n")
    facts = [f"option {option.markdown()}" for option in options_of(method)]
    facts += [f"search `{option}`: {', '.join(map(repr, values))}" for option, values in method.search_space.items()]
    for kind, problem in PROBLEMS.items():
        if reason := method.skip(problem):
            facts.append(f"skips {kind}: {reason}")
    if method.alone:
        facts.append("an [estimator](estimators.md): it trains in its own way, each cell in a process of its own")
    if isinstance(method, Wrapper):
        trained = f", trained {method.folds} times" if method.folds else ""
        facts.append(f"a [wrapper](wrappers.md): its networks are those of the method that it is around{trained}")
    if isinstance(method, Method) and not method.early_stopping:
        facts.append("trains all epochs: no early stopping")
    if method.spread != "posterior":
        facts.append(SPREADS[method.spread])
    facts += [f"fails the check `{check}`: {reason}" for check, reason in method.expected_failures.items()]
    body = "\n".join(f"- {fact}" for fact in facts)
    own = inspect.getdoc(type(method)) or ""
    parts = [f"## {name}", first, own, _fenced(rest.strip("\n")), body]
    return "\n" + "\n\n".join(part for part in parts if part)


def costs(method: Method) -> tuple[str, str, str, str]:
    """Return the costs of a draw and of what a network keeps, and how many there are, as cells of the table."""
    task = next(problem.task for problem in PROBLEMS.values() if method.skip(problem) is None)
    own, plain = count_cost(method, task), count_cost(Plain(), task)
    draw, kept = _times(own, plain, "draw_operations"), _times(own, plain, "kept")
    return draw, f"{own.random_numbers:,}", kept, str(method.networks)


def _times(own: Cost, plain: Cost, what: str) -> str:
    return f"{getattr(own, what) / getattr(plain, what):.2f}"


def _fenced(text: str) -> str:
    """Return a docstring's paragraphs with its equations as blocks of code."""
    return "\n\n".join(f"```text\n{part.text}\n```" if part.equation else part.text for part in paragraphs(text))


if __name__ == "__main__":
    write_page(__doc__, lambda: page(Registry()))
