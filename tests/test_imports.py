"""What works without torch, which takes seconds to import: all of it in one fresh interpreter, step by step."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.probes import probe_types
from tests.test_house import ROOT

STORES = ("store", "status", "lookup", "merge", "gc", "export", "results")
STEPS = {
    "reading a suite": "from bench.plan.suite import load_suite; load_suite('quick'); load_suite('latency-digits')",
    "the probes": f"from bench.probes import probe_types; assert len(probe_types()) == {len(probe_types())}",
    "writing a store": "from bench.spec.cell import Cell, Outcome; from bench.store.store import Store\n"
    "Store(sys.argv[1]).save([(Cell('k', 'd', 0, 'm', 0, '{}'), Outcome('ok'))])",
    "commands on stores": f"import bench.cli.store, {', '.join(f'bench.store.{name}' for name in STORES)}",
    "statistics": "import bench.stats, tools.validity_tables",
    "histories": "import bench.history.files",
    "what datasets import": "from bench.api import Dataset, Split, File, find_file, corruptions",
    "what reports import": "from bench.api import Report, Results, Table, Metric, stats, style",
}


@pytest.mark.slow
def test_what_needs_no_torch(python: Callable[..., str], tmp_path: Path) -> None:
    plugins = [f"bench.{kind}.{p.stem}" for kind in ("datasets", "reports") for p in (ROOT / kind).glob("[!_]*.py")]
    assert len(plugins) > 20
    steps = {**STEPS, **{name: f"import {name}" for name in sorted(plugins)}}
    code = "".join(f"{step}\nassert 'torch' not in sys.modules, {name!r}\n" for name, step in steps.items())
    assert python(f"import sys\n{code}print('all')", str(tmp_path / "s.db")) == "all"
