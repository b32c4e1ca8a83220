"""`uqbench doctor`: check everything that a run depends on, with advice."""

import os
import sys
import tempfile
import warnings
from dataclasses import dataclass
from typing import Literal

from bench.errors import UserError
from bench.machine.data_files import data_folders
from bench.machine.environment import cores, cpu_model, package_versions
from bench.plugins.kinds import FOLDERS
from bench.plugins.registry import Registry

State = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """The result of one check; the text of a problem says what to do."""

    state: State
    subject: str
    text: str


def examine(registry: Registry, store: str) -> list[Finding]:
    """Check everything that a run depends on."""
    findings = [_python(), *_packages()]
    if not any(f.state == "problem" for f in findings):
        findings += [_device(), _threads(), _compiler()]
    return [*findings, *_plugins(registry), *_metrics(registry), *_data(), _writable(store)]


def _python() -> Finding:
    return Finding("ok", "python", f"{sys.version.split()[0]} at {sys.executable}")


def _packages() -> list[Finding]:
    found = package_versions()
    missing = [name for name, version in found.items() if version is None and name != "uqbench"]
    there = ", ".join(f"{name} {version}" for name, version in found.items() if version)
    findings = [Finding("ok", "packages", there)]
    if missing:
        advice = f"missing: {', '.join(missing)}; run 'pip install uqbench' again"
        findings.append(Finding("problem", "packages", advice))
    if found["uqbench"] is None:
        findings.append(Finding("note", "packages", "uqbench is not installed; it runs from this folder"))
    return findings


def _device() -> Finding:
    import torch

    if torch.cuda.is_available():
        test = "'uqbench verify device cuda' tests it in a minute"
        return Finding("ok", "device", f"cuda: {torch.cuda.get_device_name()}; {test}; cpu: {cpu_model()}")
    missing = "no CUDA device found, --device cuda is not possible; 'uqbench verify device' tests what is here"
    return Finding("note", "device", f"cpu: {cpu_model()}; {missing}")


def _threads() -> Finding:
    import torch

    policy = os.environ.get("OMP_WAIT_POLICY", "")
    text = f"{torch.get_num_threads()} torch threads on {cores()} cores, OMP_WAIT_POLICY={policy}"
    if policy.upper() != "PASSIVE":
        return Finding("problem", "threads", f"{text}: waiting threads will spin; unset it or set it to PASSIVE")
    return Finding("ok", "threads", text)


def _compiler() -> Finding:
    from bench.training.compiled_graphs import compiler_found

    if compiler_found():
        return Finding("ok", "compiler", "C++ compiler found: long trainings are compiled")
    return Finding("note", "compiler", "no C++ compiler (g++ or clang++): everything works, long trainings are slower")


def _plugins(registry: Registry) -> list[Finding]:
    findings = []
    for kind in FOLDERS:
        names = registry.plugins(kind)
        broken = []
        for name in names:
            try:
                registry.load(kind, name)
            except UserError as error:
                broken.append(Finding("problem", f"{kind}s", str(error)))
        findings.append(Finding("ok", f"{kind}s", ", ".join(names)))
        findings += broken
    return findings


def _metrics(registry: Registry) -> list[Finding]:
    """Name the metrics of packages and files; the built-in ones are too many to list."""
    from bench.metrics.discovery import BUILT_IN

    with warnings.catch_warnings(record=True) as left_out:
        warnings.simplefilter("always")
        try:
            names = registry.metrics
        except UserError as error:
            return [Finding("problem", "metrics", str(error))]
    others = [name for name in names if name not in {metric.name for metric in BUILT_IN}]
    text = f"{len(BUILT_IN)} built in" + (f"; of plug-ins: {', '.join(others)}" if others else "")
    return [Finding("ok", "metrics", text), *(Finding("problem", "metrics", str(w.message)) for w in left_out)]


def _data() -> list[Finding]:
    findings = []
    for folder in data_folders():
        if folder.is_dir():
            content = sorted(entry.name for entry in folder.iterdir())
            findings.append(Finding("ok", "data", f"{folder}: {', '.join(content) or 'empty'}"))
        else:
            findings.append(Finding("note", "data", f"{folder}: no such folder; downloaded datasets would be there"))
    return findings


def _writable(store: str) -> Finding:
    from bench.store.address import parse_address

    try:
        path = parse_address(store).path
    except UserError as error:
        return Finding("problem", "store", str(error))
    if path is None:
        return _reachable(store)
    folder = next(p for p in (path.absolute().parent, *path.absolute().parents) if p.exists())
    state = "exists" if path.exists() else "will be created by the first run"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding("ok", "store", f"{path} ({state})")
    except OSError as error:
        return Finding("problem", "store", f"{folder}: {error.strerror}; choose another place with --store PATH")


def _reachable(store: str) -> Finding:
    from bench.store.store import Store

    try:
        opened = Store(store, writable=False)
    except UserError as error:
        return Finding("problem", "store", str(error))
    opened.close()
    return Finding("ok", "store", f"{opened.address} answers")
