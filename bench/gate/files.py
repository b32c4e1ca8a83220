"""A gate for machines: JSON, and JUnit's XML for the test pages of CI services."""

import json
from dataclasses import asdict
from pathlib import Path
from xml.etree import ElementTree as Xml

from bench.errors import UserError
from bench.gate.decide import Gate
from bench.gate.text import summary, told
from bench.json_values import without_nan


def as_json(made: Gate, *, strict: bool = False) -> str:
    """Return everything there is; NaN is null."""
    margins = {name: str(margin) for name, margin in made.rules.margins.items()}
    content = {
        "suite": made.suite,
        "passed": not made.failing(strict=strict),
        "strict": strict,
        "identical": made.identical,
        "summary": summary(made, strict=strict),
        "counts": dict(made.counts()),
        "seeds": made.seeds,
        "values": made.values,
        "alpha": made.rules.alpha,
        "equivalence_alpha": made.rules.equivalence_alpha,
        "margins": margins,
        "baseline_code": made.baseline_code,
        "codes": list(made.codes),
        "environment": list(made.environment),
        "notes": list(made.notes),
        "work": asdict(made.work) if made.work else None,
        "rows": [asdict(row) for row in made.rows],
    }
    return json.dumps(without_nan(content), indent=2, allow_nan=False)


def junit(made: Gate, *, strict: bool = False) -> str:
    """Return one test case a comparison; a case fails as the gate does."""
    bad = {id(row) for row in made.failing(strict=strict)}
    skipped = [row for row in made.rows if row.verdict in ("new", "not compared")]
    suite = Xml.Element(
        "testsuite",
        name=f"uqbench gate {made.suite}",
        tests=str(len(made.rows)),
        failures=str(len(bad)),
        skipped=str(len(skipped)),
        errors="0",
    )
    for row in made.rows:
        case = Xml.SubElement(suite, "testcase", classname=f"{made.suite}.{row.dataset}.{row.method}", name=row.metric)
        sentence = told(row)
        if id(row) in bad:
            Xml.SubElement(case, "failure", message=sentence, type=row.verdict)
        elif row in skipped:
            Xml.SubElement(case, "skipped", message=sentence)
        else:
            Xml.SubElement(case, "system-out").text = sentence
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def write(path: Path, text: str) -> None:
    """Write a report."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
