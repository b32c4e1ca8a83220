"""`uqbench new` and `uqbench verify`: write a new plug-in, and run the checks of its kind, or those of a device."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from bench.cli.options import data_option, json_option, output_option, plugin_option, set_data_folder
from bench.cli.output import Command, echo, end
from bench.errors import UserError, unknown_name

if TYPE_CHECKING:
    from bench.metrics import Metric
    from bench.plugins.kinds import Kind
    from bench.plugins.registry import Registry
    from bench.testing import Verdict

KINDS = ("method", "dataset", "network", "report", "metric", "device")


@click.command(cls=Command)
@click.argument("kind", metavar="method|dataset|network|report|metric|device")
@click.argument("name", required=False)
@plugin_option
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check; may be repeated.")
@data_option
@json_option
@output_option("--out", metavar="FILE", help="Also write the result as JSON.")
def verify(
    kind: str,
    name: str | None,
    plugins: Sequence[str],
    only: Sequence[str],
    data: str | None,
    as_json: bool,
    out: str | None,
) -> None:
    """Run the checks that every plug-in of this kind has to pass; exit 1 if one fails.

    A plug-in lists checks that it is expected to fail in `expected_failures`, each with the reason.

    'verify device [cuda|mps|xpu|cpu]' checks in about a minute whether training, drawing and timing on this machine's
    device can be believed; without a name it takes the accelerator that torch sees, or else the CPU.
    """
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS)
    if kind == "device":
        if plugins or data is not None:
            raise UserError(
                "verify device runs the built-in plug-ins on data of its own: leave out --plugin and --data"
            )
        from bench.testing.device_checks import device_facts, find_device, verify_device

        name = find_device(name)
        found, facts = verify_device(name, only), device_facts(name)
    else:
        if name is None:
            raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'NAME'", param_type="argument")
        set_data_folder(data)
        from bench.testing import verify as verdicts_of

        found, facts = verdicts_of(_plugin(kind, name, plugins), only), {}
    verdicts: list[Verdict] = []
    for verdict in found:
        if not as_json and not _failed_before(verdict, verdicts):
            _print(verdict)
        verdicts.append(verdict)
    if not as_json:
        _print_repeated(verdicts)
    counts = {state: sum(v.state == state for v in verdicts) for state in STATES}
    summary = {"kind": kind, "name": name, "ok": not counts["failed"], "counts": counts}
    text = json.dumps(summary | facts | {"checks": [vars(v) for v in verdicts]}, indent=2, ensure_ascii=False)
    if as_json:
        echo(text)
    else:
        echo(f"{kind} {name}: " + ", ".join(f"{n} {state}" for state, n in counts.items() if n))
    if out is not None:
        from bench.machine.files import write_output

        write_output(Path(out), f"{text}\n")
    if counts["failed"]:
        end(1)


def _plugin(kind: str, name: str, files: Sequence[str]) -> Any:
    from bench.plugins.registry import Registry

    registry = Registry([Path(p) for p in files])
    if kind == "metric":
        return _metric(registry, name)
    registry.require_from_file(cast("Kind", kind), name)
    return registry.make(cast("Kind", kind), name, {})


def _metric(registry: "Registry", name: str) -> "Metric":
    own = name.replace("-", "_")
    if own not in registry.metrics:
        raise unknown_name("metric", name, registry.metrics)
    if registry.files and own not in registry.metric_files:
        files = ", ".join(map(str, registry.files))
        has = ", ".join(map(repr, registry.metric_files)) or "no metric"
        raise UserError(f"metric {name!r} is not from --plugin: {files} has {has}")
    return registry.metrics[own]


STATES = ("ok", "failed", "expected failure", "not applicable")


def _print(verdict: "Verdict") -> None:
    if verdict.state == "ok":
        measured = f" ({verdict.message})" if verdict.message else ""
        echo(f"ok       {verdict.check}: {verdict.proves}{measured}")
    elif verdict.state == "failed":
        echo(f"FAILED   {verdict.check}: {verdict.message}")
    else:
        echo(f"-        {verdict}")


def _failed_before(verdict: "Verdict", earlier: "Sequence[Verdict]") -> bool:
    """Return whether another check failed for the same reason."""
    return verdict.state == "failed" and any((v.state, v.message) == ("failed", verdict.message) for v in earlier)


def _print_repeated(verdicts: "Sequence[Verdict]") -> None:
    """Print the checks that failed for the reason of another, which was printed with that one."""
    by_reason: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.state == "failed":
            by_reason.setdefault(verdict.message, []).append(verdict.check)
    for first, *others in by_reason.values():
        if others:
            echo(f"FAILED   for the same reason as {first}: {', '.join(others)}")


@click.command(cls=Command)
@click.argument("kind", metavar="method|estimator|wrapper|dataset|network|report|metric|package")
@click.argument("name")
@click.option("--kind", "content", metavar="KIND", help="What a package contains.  [default: method]")
@output_option("--out", default=".", metavar="DIR", help="The folder to write to.  [default: here]")
def new(kind: str, name: str, content: str | None, out: str) -> None:
    """Write a new plug-in that works, with its test, or an installable package with one.

    An estimator is a method that fits and predicts in its own way, without the training of the harness. A wrapper is a
    method around another one.
    """
    from bench.plugins.registry import Registry
    from bench.plugins.scaffold import TRIALS, plugin_of, registered_as, scaffold

    if content is not None and kind != "package":
        raise UserError(f"--kind is for packages: write 'uqbench new package {name} --kind {content}'")
    written = scaffold(kind, name, Path(out), Registry(), content or "method")
    for path in written:
        echo(f"wrote {path}")
    inside = content or "method" if kind == "package" else kind
    plugin = plugin_of(inside, name)
    if kind == "package":
        first, second = f"pip install -e {written[0].parent}", f"uqbench verify {registered_as(inside)} {plugin}"
    else:
        first = f"uqbench verify {registered_as(kind)} {plugin} --plugin {written[0]}"
        second = f"uqbench {TRIALS[registered_as(kind)].format(plugin)} --plugin {written[0]}"
    echo(f"next: {first}\nthen: {second}")
