"""Passwords in addresses of stores: no message, page, JSON document or list of processes shows one.

`show_address` is the only function that turns an address into text. `hide_passwords` is for lines in which an address
may stand anywhere, such as an argument that was given in the wrong place. Neither needs a database library.
"""

import ctypes
import os
import re
from collections.abc import Sequence
from pathlib import Path

HIDDEN = "***"
# The parts of a query that are shown; the others may hold a password (password, sslpassword, options, ...).
SHOWN = {"arrays", "host", "hostaddr", "port", "user", "sslmode", "connect_timeout", "application_name"}
_PARTS = re.compile(
    r"(?:(?P<user>[\w.%~-]*)(?P<password>:[^@]*)?@)?(?P<place>[\w.,~-]*|\[[0-9A-Fa-f:.]+\])(?P<port>:\d*)?"
    r"(?P<database>/[^?@]*)?(?:\?(?P<query>[^@]*))?"
)
_CONNECTION = re.compile(r"postgres\w*(\+\w+)?:|(.*\s)?(password|dbname)\s*=", re.IGNORECASE | re.DOTALL)
_LOGIN = re.compile(r"(\b(?:[a-z][a-z0-9+]*://|postgres\w*:/?)[^\s:@/'\"*]*:)(?!\*{3}@)(?=\S)[^\n]+@", re.IGNORECASE)
_SETTING = re.compile(r"((?:^|[?&\s'\"(])\w*password\s*=\s*)(?!\*{3})('[^']*'|[^\s&'\")]+)", re.IGNORECASE)


def is_connection(address: str) -> bool:
    """Return whether a text without '://' is a way to name a server rather than a file."""
    return bool(_CONNECTION.match(address))


def show_address(address: str) -> str:
    """Return the address of a store as text, with everything that may be a password replaced."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return HIDDEN if is_connection(address) else address
    if scheme.lower() == "sqlite" and rest.startswith("/"):
        return address
    parts = _PARTS.fullmatch(rest)
    if parts is None or not re.fullmatch(r"[\w+]*", scheme):
        return f"{scheme if re.fullmatch(r'[a-zA-Z]*', scheme) else HIDDEN}://{HIDDEN}"
    login = f"{parts['user']}{':' + HIDDEN if parts['password'] else ''}@" if "@" in rest else ""
    query = "&".join(_shown_pair(pair) for pair in (parts["query"] or "").split("&") if pair)
    place = f"{parts['place']}{parts['port'] or ''}{parts['database'] or ''}"
    return f"{scheme}://{login}{place}{'?' + query if query else ''}"


def _shown_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    if name in SHOWN:
        return pair
    return f"{name}={HIDDEN}" if equals else HIDDEN


def hide_passwords(line: str) -> str:
    """Return a line with the passwords of all addresses in it replaced."""
    return _SETTING.sub(rf"\1{HIDDEN}", _LOGIN.sub(rf"\1{HIDDEN}@", line))


def hide_in_process_list(arguments: Sequence[str]) -> bool:
    """Overwrite arguments with a password in the memory from which 'ps' shows this process; return whether it could.

    Linux only, and a moment after the process started: a password in a file or in the environment is never shown.
    """
    secret = [
        (os.fsencode(each), os.fsencode(hide_passwords(each))) for each in arguments if hide_passwords(each) != each
    ]
    if not secret:
        return True
    try:
        # The fields behind the name of the program, which may itself hold blanks: 48 and 49 of man 5 proc.
        fields = Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        if not 0 < start < end:
            return False
        shown = ctypes.string_at(start, end - start)
        for whole, hidden in secret:
            shown = shown.replace(whole, hidden[: len(whole)].ljust(len(whole), b"\0"))
        ctypes.memmove(start, shown, end - start)
    except (OSError, ValueError, IndexError):
        return False
    return True
