"""Builds a plug-in from options: checked against its fields, with errors that name the option and what is allowed."""

import dataclasses
import json
import typing
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bench.errors import UserError, raise_if_stop, unknown_name

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class PluginError(UserError):
    """A plug-in that exists but cannot be loaded."""


class AddressText(str):
    """The text of an option in an address, such as `openml:44956?task_id=361234`: it may state a number."""

    __slots__ = ()


def build(cls: type[Any], given: Mapping[str, Any], where: str) -> Any:
    """Build a plug-in from options, with errors that name the option and what is allowed."""
    from pydantic import TypeAdapter, ValidationError

    try:
        hints = typing.get_type_hints(cls)
    except BaseException as error:  # the names in a plug-in's annotations are its own
        raise_if_stop(error)
        raise PluginError(f"{where}: {cls.__name__}: {in_one_line(error)}") from error
    fields = [field for field in dataclasses.fields(cls) if field.init]
    known = {field.name: hints[field.name] for field in fields}
    checked = {}
    for name, value in given.items():
        if name not in known:
            raise unknown_name("option", name, known, where)
        try:
            # As JSON: a suite and a stored spec have lists where an option may be a tuple.
            checked[name] = _checked(TypeAdapter(known[name]), value)
        except ValidationError as error:
            raise UserError(f"{where}: {name}: {error.errors()[0]['msg']}, got {value!r}") from None
        except TypeError:
            raise UserError(f"{where}: {name}: expected plain data, got {value!r}") from None
    for field in fields:
        if field.name not in checked and field.default is field.default_factory is dataclasses.MISSING:
            raise UserError(f"{where}: the option {field.name!r} has no default; give it a value")
    try:
        return cls(**checked)
    except (ValueError, TypeError) as error:
        raise UserError(f"{where}: {error}") from None
    except BaseException as error:  # see Registry.load
        raise_if_stop(error)
        raise PluginError(f"{where}: {in_one_line(error)}") from error


def _checked(adapter: "TypeAdapter[Any]", value: Any) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError:
        if isinstance(value, AddressText):
            with suppress(ValidationError):
                return adapter.validate_json(value, strict=True)
        raise


def in_one_line(error: BaseException) -> str:
    """Return the message of a plug-in's exception, without its traceback."""
    text = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}".removesuffix(": ")
    return " ".join(text.split())
