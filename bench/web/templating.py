"""The templates of all pages: what is in them is escaped, and no script runs but their own."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bench import __version__
from bench.web.dates import moment
from bench.web.names import file_name, metric_name


def templates(package: str) -> Environment:
    """Return the templates, with the style, the script and the policy that every page holds."""
    script = _own("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("bench.web"), PackageLoader(package)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "style": Markup(_own("style.css").replace("DARK", _own("dark.css"))),  # by the system's wish, or the reader's
        "script": Markup(script),
        # Only this script runs, whatever a name in the store may hold.
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "version": __version__,
    }
    environment.filters |= {"page_name": file_name, "metric_name": metric_name, "moment": moment}
    return environment


def _own(name: str) -> str:
    return (files("bench.web") / "templates" / name).read_text("utf-8")
