"""How to run a method of a leaderboard again: the exact command, and a suite file where no built-in suite has it."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.errors import UserError
from bench.leaderboard.rows import Row
from bench.plan.cells import build_spec
from bench.plan.suite import load_suite, suite_names
from bench.plugins.building import PluginError
from bench.plugins.files import PluginSource
from bench.plugins.registry import Registry
from bench.plugins.wrapping import inner_table
from bench.spec.plugin import SUBMITTED, inner_spec
from bench.spec.protocol import network_table
from bench.spec.spec import ON_REQUEST, REPEATED, foreign_plugins
from bench.web.names import file_name

NEW_STORE = "again.db"  # in the store that has them nothing would run
# Seeds are a number there; the harness is that of the code that is checked out; metrics come with their plug-in file;
# the device is an option of the command.
NOT_IN_SUITES = REPEATED | {"harness", "metrics", "device"}


@dataclass(frozen=True)
class Rerun:
    """What to type."""

    lines: tuple[str, ...]
    file: str = ""  # of a suite, to be written beside the pages; '' where a built-in suite will do
    content: str = ""
    remark: str = ""
    plugins: Mapping[str, bytes] = field(default_factory=dict)  # files to be written beside the pages


def rerun(rows: Sequence[Row], registry: Registry, sources: Mapping[str, PluginSource] | None = None) -> Rerun:
    """Return how to repeat the results of one method in one suite, on all its datasets.

    `sources` are the stored plug-in files by hash: those that the results need are written beside the suite file.
    """
    first = rows[0]
    if first.spec.method.origin == SUBMITTED:
        about = first.spec.method.options
        return Rerun((), remark=f"Submitted predictions of {about['who']} ({about['how']}): scored here, not re-run.")
    seeds, splits = max(row.planned for row in rows), _shared_splits(rows)
    built_in = _built_in(rows, seeds, registry)
    lines = list(_code(sorted({code for row in rows for code in row.codes})))
    plugins, known = _plugin_files(rows), sources or {}
    command = ["uqbench", "run"]
    file = content = ""
    if built_in:
        command += [first.suite, "--method", first.method, *built_in, *(["--splits", str(splits)] if splits else [])]
    else:
        file = f"rerun/{file_name(f'{first.suite} {first.method}')}.toml"
        content = suite_text(rows, seeds, splits)
        command.append(file)
        if plugins:  # a plug-in file adds all that it holds to the suite
            command += ["--method", first.method, *(x for row in rows for x in ("--dataset", row.dataset))]
    restored = {digest: f"rerun/{digest}/{known[digest].file_name}" for digest in plugins if digest in known}
    for digest, names in plugins.items():
        stem = names[0].split()[-1].partition(":")[0].replace("-", "_")
        command += ["--plugin", restored.get(digest, f"{stem}.py")]
    if first.spec.device != "cpu":
        command += ["--device", first.spec.device]
    lines.append(shlex.join([*command, "--store", NEW_STORE]))
    files = {path: known[digest].content for digest, path in restored.items()}
    return Rerun(tuple(lines), file, content, _remark(plugins, restored, file), files)


def _remark(plugins: Mapping[str, Sequence[str]], restored: Mapping[str, str], file: str) -> str:
    files = []
    for digest, names in plugins.items():
        what = " and ".join(names)
        if digest in restored:
            files.append(f"{restored[digest]} is the plug-in file of {what} as it was run; read it before you run it.")
        else:
            files.append(f"The {what} came from a file with the BLAKE2b hash {digest}; it is not part of uqbench.")
    beside = "Files named rerun/... lie beside the leaderboard's index.html." if restored else ""
    remarks = ["The suite file lies beside the leaderboard's index.html:"] if file else []
    return " ".join([*files, *([beside] if beside and not file else []), *remarks])


def _code(codes: Sequence[str]) -> list[str]:
    """Return how to get the code: the checkout, or the package of that number."""
    lines = []
    for code in codes:
        if code.startswith("uqbench "):
            lines.append(shlex.join(["pip", "install", code.replace(" ", "==")]))
        else:
            lines.append(shlex.join(["git", "checkout", code]))
    # Results of several versions cannot all be repeated by one; each is named.
    return lines if len(lines) <= 1 else [f"{line}  # one of {len(lines)} versions" for line in lines]


def _plugin_files(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the files that were given on the command line: by the hash of their content the plug-ins they hold."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for name, origin in foreign_plugins(row.spec).items():
            if re.fullmatch(r"[0-9a-f]{16}", origin) and name not in (names := found.setdefault(origin, [])):
                names.append(name)
    return found


def _built_in(rows: Sequence[Row], seeds: int, registry: Registry) -> list[str]:
    """Return the options with which a built-in suite makes exactly these cells; [] where it would make others."""
    name, method = rows[0].suite, rows[0].method
    if name not in suite_names():
        return []
    try:
        suite = load_suite(name, [f"seeds={seeds}"], [method] if method in registry.plugins("method") else [])
        plan = suite.only([row.dataset for row in rows], [method])
        of_method = plan.methods[method]
        plugin = registry.make("method", of_method.use or method, of_method.options)
        for row in rows:
            entry = plan.datasets[row.dataset]
            dataset = registry.make("dataset", entry.use or row.dataset, entry.options)
            planned = build_spec(plan, registry, (row.dataset, dataset), (method, plugin), row.spec.data, row.spec.seed)
            if replace(planned, **{name: getattr(row.spec, name) for name in NOT_IN_SUITES}) != row.spec:
                return []
    except (UserError, PluginError, TypeError):
        return []
    chosen = [] if len(rows) == len(suite.datasets) else [x for row in rows for x in ("--dataset", row.dataset)]
    return [*chosen, "--seeds", str(seeds)]


def _shared_splits(rows: Sequence[Row]) -> int | None:
    """Return how many splits the seeds share; None where each seed has its own."""
    shared = [row for row in rows if any(spec.split != spec.seed for spec in row.specs)]
    return max((spec.split + 1 for row in shared for spec in row.specs), default=None)


def suite_text(rows: Sequence[Row], seeds: int, splits: int | None = None) -> str:
    """Return a suite file that makes exactly the cells of these rows, which are one method's."""
    method = rows[0]
    plugin = method.spec.method
    # What a search chose is not given a value: the search is part of the cell.
    inner, space = inner_spec(plugin), method.spec.space
    chosen = {name: value for name, value in plugin.options.items() if inner is not None or name not in space}
    if inner is not None:
        chosen["method"] = {name: value for name, value in inner_table(inner).items() if name not in space}
    protocols = [{**row.spec.plain()["protocol"], "network": network_table(row.spec.protocol.network)} for row in rows]
    alike = all(protocol == protocols[0] for protocol in protocols)
    content: dict[str, Any] = {"title": f"{method.method} of {method.suite}, again", "seeds": seeds, "splits": splits}
    requested = [name for name, file in method.spec.metrics.items() if file == ON_REQUEST]
    content |= {"metrics": requested} if requested else {}
    content |= protocols[0] if alike else {}
    content["datasets"] = {}
    for row, protocol in zip(rows, protocols, strict=True):
        used = row.spec.dataset
        content["datasets"][row.dataset] = {"use": used.name, **used.options, **({} if alike else protocol)}
    searched = {"grid": method.spec.space} if method.spec.space else {}
    content["methods"] = {method.method: {"use": plugin.name, **chosen, **searched}}
    return toml(content)


def toml(content: Mapping[str, Any]) -> str:
    """Return plain data as TOML: tables below their values. None, which TOML has not, is left out."""
    return "\n".join(_table(content, ())).strip() + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    values = {key: value for key, value in table.items() if not isinstance(value, Mapping) and value is not None}
    lines = ["", f"[{'.'.join(_key(part) for part in path)}]"] if path and (values or not table) else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _table(value, (*path, key))
    return lines


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(each) for each in value)}]"
    # A JSON string is a TOML string, but for DEL, which TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
