"""New plug-ins from templates: files that work and pass 'uqbench verify' as they stand.

The templates are the text files in `templates/`; a word with a dollar in front is filled in.
"""

import keyword
import re
import sys
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import cast

from bench.errors import UserError, unknown_name
from bench.plugins.kinds import Kind, plugin_name
from bench.plugins.registry import Registry

PLUGINS = ("method", "estimator", "wrapper", "dataset", "network", "report", "metric")
KINDS = (*PLUGINS, "package")
# How suite quick shows what a new plug-in does.
TRIALS = {
    "method": "run quick --method {} --seeds 2",
    "dataset": "run quick --dataset {} --seeds 2",
    "network": "run quick --set network.kind={} --seeds 2",
    "report": "report",
    "metric": "run quick --method mc-dropout --dataset diabetes --seeds 2",
}


def scaffold(kind: str, name: str, out: Path, registry: Registry, content: str = "method") -> list[Path]:
    """Write the files of a new plug-in, or of a package with a plug-in of the kind `content`; return them."""
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    if content not in PLUGINS:
        raise unknown_name("kind", content, PLUGINS, "--kind")
    check_name(kind, name, registry, content)
    texts = _package(content, name) if kind == "package" else _plugin(kind, name)
    paths = {out / place: text for place, text in texts.items()}
    _refuse_to_overwrite([out / name] if kind == "package" else paths)
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise UserError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    return list(paths)


def registered_as(kind: str) -> Kind:
    """Return the kind under which the registry has such a plug-in: estimators and wrappers are methods."""
    return "method" if kind in ("estimator", "wrapper") else cast("Kind", kind)


def plugin_of(kind: str, name: str) -> str:
    """Return the name by which uqbench knows the plug-in of a new file or package."""
    return name.replace("-", "_") if kind == "metric" else plugin_name(name)


def check_name(kind: str, name: str, registry: Registry, content: str = "method") -> None:
    """Refuse a name that could not be a plug-in's, saying which could."""
    stem = name.replace("-", "_")
    rule = "use letters, digits, - or _, beginning with a letter, such as my-noise"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*", name):
        raise UserError(f"{name!r} cannot be the name of a {kind}: {rule}")
    if keyword.iskeyword(stem) or stem in sys.stdlib_module_names:
        raise UserError(f"{name!r} cannot be the name of a {kind}: Python has its own {stem}; add a word to it")
    inside = content if kind == "package" else kind
    if inside == "metric":
        if stem != stem.lower():
            raise UserError(f"{name!r} cannot be the name of a {kind}: use lower-case letters, such as {stem.lower()}")
        if stem in registry.metrics:
            raise UserError(f"{name!r} cannot be the name of a {kind}: there is a metric of this name; choose another")
        return
    known_as = registered_as(inside)
    known = registry.plugins(known_as).get(plugin_name(stem))
    if known is not None:
        raise UserError(
            f"{name!r} cannot be the name of a {kind}: a {known_as} has it ({known.origin}); choose another"
        )


def _plugin(kind: str, name: str) -> dict[Path, str]:
    stem = name.replace("-", "_")
    # The test stands beside the file: pytest puts its folder on the path.
    words = _words(name) | {"import_line": f"from {stem} import {_imported(kind, name)}"}
    return {
        Path(f"{stem}.py"): _filled(f"{kind}.py", words),
        Path(f"test_{stem}.py"): _filled(f"test_{kind}.py", words),
    }


def _package(kind: str, name: str) -> dict[Path, str]:
    stem, plugin, known_as = name.replace("-", "_"), plugin_of(kind, name), registered_as(kind)
    module = f"{stem}.{known_as}"
    words = _words(name) | {
        "import_line": f"from {module} import {_imported(kind, name)}",
        "kind": known_as,
        "plugin": plugin,
        "entry": f"{module}:METRICS" if kind == "metric" else module,
        # A report shows the results of any run.
        "trial": "run quick --seeds 2" if kind == "report" else TRIALS[known_as].format(plugin),
        "advice": "" if kind == "metric" else "; raise its `version` when its numbers change",
    }
    root = Path(name)
    return {
        root / "pyproject.toml": _filled("package/pyproject.toml", words),
        root / "README.md": _filled("package/README.md", words),
        root / "src" / stem / "__init__.py": _filled("package/init.py", words),
        root / "src" / stem / f"{known_as}.py": _filled(f"{kind}.py", words),
        root / "tests" / f"test_{stem}.py": _filled(f"test_{kind}.py", words),
    }


def _imported(kind: str, name: str) -> str:
    """Return what the test of a plug-in imports from its file."""
    return f"METRICS, {name.replace('-', '_')}" if kind == "metric" else _class_name(name)


def _words(name: str) -> dict[str, str]:
    title = re.sub(r"[-_]+", " ", name)
    stem = name.replace("-", "_")
    return {"name": name, "stem": stem, "class_name": _class_name(name), "title": title[0].upper() + title[1:]}


def _class_name(name: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in re.split(r"[-_]", name))


def _filled(template: str, words: dict[str, str]) -> str:
    text = files("bench.plugins").joinpath("templates", *f"{template}.txt".split("/")).read_text("utf-8")
    return Template(text).substitute(words)


def _refuse_to_overwrite(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.exists():
            raise UserError(f"{path} is there already and is never overwritten; choose another name or --out DIR")
