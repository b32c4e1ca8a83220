"""The driver's connection to a Dask scheduler."""

from typing import Any

from bench.errors import UserError

QUEUE = "uqbench-"  # and the identifier of the client: the name of the queue for its messages
LONGEST_LINE = 300


def connected(address: str, security: Any = None) -> Any:
    """Return a client of this scheduler, which removes the client's queue when it has gone; raises in one line."""
    import distributed

    from bench.run.executors.dask_queue import ForgetQueues

    dask: Any = distributed
    own = security or dask.Security()
    if address.startswith("tls://") and own.get_connection_args("client")["ssl_context"] is None:
        raise UserError(
            f"--address {address}: certificates are needed; name them in Dask's configuration, as docs/clusters.md says"
        )

    class Client(dask.Client):  # type: ignore[misc]  # an untyped library
        def __del__(self) -> None:
            """Do nothing: Dask would wait here for a scheduler that was never reached. Ours is always closed."""

    try:
        client = Client(address, timeout=10, set_as_default=False, security=security)
    except (OSError, ValueError, TypeError, TimeoutError) as error:
        raise UserError(f"--address {address}: no Dask scheduler answers there: {one_line(error)}") from None
    try:
        for topic in ("print", "warn"):  # or any worker could write to this process's output
            client.unsubscribe_topic(topic)
        client.register_plugin(ForgetQueues())
    except Exception:  # whose pickle is not read here
        client.close()
        raise UserError(
            f"--address {address}: its scheduler has another version of uqbench or Dask, or none; "
            "install the same version there"
        ) from None
    return client


def one_line(text: object) -> str:
    """Return one line that can be printed, of a text that somebody else wrote."""
    first = str(text).strip().partition("\n")[0][:LONGEST_LINE]
    return "".join(letter if letter.isprintable() else "?" for letter in first)
