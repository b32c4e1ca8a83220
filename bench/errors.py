"""The exception for mistakes of the user, and which exceptions end a run."""

import difflib
import signal
import threading
from collections.abc import Iterable


class UserError(Exception):
    """A mistake of the user; the message says in one line what is wrong, where, and what would be right."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> UserError:
    """Return the error for an unknown name, with the most similar known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names) or 'none'}"
    place = f"{where}: " if where else ""
    return UserError(f"{place}unknown {kind} {name!r}; {hint}")


class StopNowError(KeyboardInterrupt):
    """A second signal: the run ends at once."""


def raise_if_stop(error: BaseException) -> None:
    """Raise an exception again if it ends the run; everything else that a plug-in raises is its own failure.

    A plug-in may raise anything: `sys.exit`, its own BaseException, even KeyboardInterrupt. A KeyboardInterrupt is real
    where Ctrl-C can raise one: in the main thread, unless the signal is ignored (workers) or handled (runs, which raise
    StopNowError).
    """
    if not isinstance(error, KeyboardInterrupt):
        return
    main = threading.current_thread() is threading.main_thread()
    if isinstance(error, StopNowError) or (main and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
        raise error
