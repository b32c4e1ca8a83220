"""The templates of all pages: values in them are escaped, and no script runs but their own."""

import base64
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bench import __version__
from bench.web.dates import day
from bench.web.names import file_name, metric_name

SCRIPT = files("bench.web") / "templates" / "script.js"


def templates(*packages: str) -> Environment:
    """Return the templates of some packages, which extend `base.html` and may include each other's."""
    loader = ChoiceLoader([PackageLoader(package) for package in ("bench.web", *packages)])
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.globals |= {**page_script(SCRIPT), "version": __version__}
    pages.filters |= {"page_name": file_name, "metric_name": metric_name, "day": day}
    return pages


def page_script(*parts: Traversable) -> dict[str, str]:
    """Return the one script of a page, made of some files, and its hash.

    The hash in the page's policy lets only this script run, whatever a name in the store contains.
    """
    script = "".join(part.read_text("utf-8") for part in parts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": f"sha256-{digest}"}
