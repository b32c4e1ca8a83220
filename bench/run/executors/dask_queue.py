"""On the scheduler: the queue of a driver ends with the driver's connection, however that ended."""

from typing import Any

from distributed.diagnostics.plugin import SchedulerPlugin

from bench.run.executors.dask_client import QUEUE


class ForgetQueues(SchedulerPlugin):
    """Removes the queue of a client that has left; Dask itself would keep it and what is in it."""

    name = "uqbench-queues"
    idempotent = True  # the one that is there serves all drivers

    def remove_client(self, scheduler: Any, client: str) -> None:
        """Forget the queue of this client."""
        extension = scheduler.extensions["queues"]
        extension.queues.pop(QUEUE + client, None)
        extension.client_refcount.pop(QUEUE + client, None)
