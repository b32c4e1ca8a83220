"""Orders and messages as plain data: JSON and arrays, for workers that other people can reach.

Whatever arrives is read as data. Nothing in it can name code, and what does not have the form of a message raises
`WireError`.
"""

import base64
import json
from dataclasses import asdict
from typing import Any

from bench.errors import UserError
from bench.run.job import JobEvent
from bench.run.worker import Message, PluginFile, WorkItem, WorkOrder
from bench.spec.cell import Outcome, from_bytes, to_bytes
from bench.spec.keep import Keep
from bench.spec.sizes import MOST_ARRAY_BYTES
from bench.store.arrays import UNREADABLE, stated_bytes
from bench.training.limits import Limits
from bench.training.progress import Progress
from bench.training.search import Selection

Parcel = tuple[int, str, str, bytes]  # the order, the key of the cell, what the content is, the content


class WireError(ValueError):
    """Something that arrived is not what this version of uqbench sends."""


def order_to_text(order: WorkOrder) -> str:
    """Return an order as JSON."""
    plugins = [{"path": each.path, "content": base64.b64encode(each.content).decode()} for each in order.plugins]
    items = [asdict(item) for item in order.items]
    plain = {"items": items, "plugins": plugins, "limits": asdict(order.limits), "keep": asdict(order.keep)}
    return json.dumps({**vars(order), **plain})


def order_from_text(text: str) -> WorkOrder:
    """Return the order that `order_to_text` wrote."""
    try:
        content = json.loads(text)
        content["items"] = tuple(WorkItem(**item) for item in content["items"])
        plugins = ((each["path"], base64.b64decode(each["content"])) for each in content["plugins"])
        content["plugins"] = tuple(PluginFile(path, file) for path, file in plugins)
        content["limits"], content["keep"] = Limits(**content["limits"]), Keep(**content["keep"])
        return WorkOrder(**content)
    except (TypeError, ValueError, KeyError, RecursionError, UserError) as error:
        raise WireError(f"not an order: {error}") from None


def to_parcel(message: Message) -> Parcel:
    """Return a message as numbers, text and bytes."""
    content = message.content
    if isinstance(content, Outcome):
        return message.order, message.key, "outcome", to_bytes(content)
    if isinstance(content, Selection):
        return message.order, message.key, "search", content.to_json().encode()
    return message.order, message.key, "progress", json.dumps(asdict(content)).encode()


def from_parcel(parcel: Any) -> Message:
    """Return the message that `to_parcel` packed."""
    try:
        order, key, kind, content = parcel
        if [type(part) for part in parcel] != [int, str, str, bytes]:
            raise WireError("not a message")
        return Message(order, key, _READERS[kind](content))
    except (*UNREADABLE, TypeError, AttributeError, OSError) as error:
        raise WireError(f"not a message: {error}") from None


def _progress(content: bytes) -> JobEvent:
    return Progress(**{name: int(value) for name, value in json.loads(content).items()})


def _outcome(content: bytes) -> JobEvent:
    if stated_bytes(content) > MOST_ARRAY_BYTES:  # before anything is unpacked
        raise WireError("too large")
    outcome = from_bytes(content)
    if outcome.predictions and stated_bytes(outcome.predictions) > MOST_ARRAY_BYTES:
        raise WireError("predictions are too large")
    if outcome.status not in ("ok", "diverged", "failed") or not isinstance(outcome.message, str):
        raise WireError("not an outcome")
    return outcome


_READERS = {"outcome": _outcome, "search": lambda content: Selection.from_json(content.decode()), "progress": _progress}
