"""How papers call a method, a dataset or a metric, instead of the names that commands know."""

import ast
import re
from functools import cache
from pathlib import Path

from bench.errors import UserError
from bench.metrics import catalogue
from bench.plugins.kinds import Kind
from bench.plugins.registry import Registry

# Written in capitals in the names of metrics.
ABBREVIATIONS = frozenset(
    {"aupr", "augrc", "auroc", "aurc", "ause", "crps", "cv", "ece", "ence", "fpr95", "mace", "mae", "mc", "mce", "mpiw"}
    | {"mpiw95", "mse", "msll", "nll", "ood", "picp", "picp95", "r2", "rmsce", "rmse", "wis"}
)


class Titles:
    """The titles of everything that a registry knows; a name that it does not know stays as it is."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    def __call__(self, name: str) -> str:
        """Return the title of a metric, a method or a dataset."""
        metric, at, condition = name.partition("@")
        if metric in catalogue():
            return metric_title(metric) + (f" at {condition}" if at else "")
        kinds: tuple[Kind, ...] = ("method", "dataset")
        for kind in kinds:
            if name in self.registry.plugins(kind):
                return self._declared(kind, name) or _capital(name.replace("-", " "))
        return name

    def _declared(self, kind: Kind, name: str) -> str:
        path = self.registry.plugins(kind)[name].path
        if path is not None:
            return _title_in(path)
        try:
            title = getattr(self.registry.load(kind, name), "title", "")
        except UserError:
            return ""
        return title if isinstance(title, str) else ""

    def in_words(self, text: str) -> str:
        """Return a text in which names in backquotes are replaced by their titles."""
        return re.sub(r"`([^`]+)`", lambda found: self(found[1]), text)


def metric_title(name: str) -> str:
    """Return the title of a metric: 'nll_mc' is 'NLL MC', 'predictive_entropy' is 'Predictive entropy'."""
    return _capital(" ".join(word.upper() if word in ABBREVIATIONS else word for word in name.split("_")))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


@cache
def _title_in(path: Path) -> str:
    """Return the title that a file writes down, `title = "MC dropout"`: a table loads no torch for a name."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Assign(targets=[ast.Name("title")], value=ast.Constant(str(title))):
                return title
    return ""
