"""A Dask cluster on this machine, in a process of its own that ends with the driver.

Its connections are encrypted and need a certificate that exists in memory only: other users of the machine can reach
its ports, but not join or use it. In a process of its own, because a scheduler unpickles what clients send.
"""

import contextlib
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from bench.errors import UserError
from bench.run.executors.dask_guard import SILENT, quiet_logs
from bench.run.executors.local import SPAWN, end_with_the_driver
from bench.run.executors.spawn import children_allowed, hidden_main


@dataclass(frozen=True)
class ClusterSettings:
    """The workers of a cluster."""

    workers: int
    threads: int = 1
    resources: Mapping[str, float] | None = None


class OwnCluster:
    """A scheduler and workers that were started for one run."""

    def __init__(self, settings: ClusterSettings) -> None:
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise UserError("--engine dask: certificates need a library; pip install 'uqbench[cluster]'") from None
        self._pipe, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(theirs, settings))
        with hidden_main(), children_allowed():
            self._process.start()
        theirs.close()
        try:
            self.address, certificates = self._pipe.recv()
        except EOFError:
            self.close()
            raise UserError("--engine dask: the cluster on this machine could not be started") from None
        from distributed.security import Security

        self.security = Security(**certificates, require_encryption=True)

    def close(self) -> None:
        """End the scheduler and the workers."""
        self._pipe.close()
        self._process.join(timeout=15)
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, settings: ClusterSettings) -> None:
    """Be the cluster until the driver closes the pipe or is gone."""
    for each in (signal.SIGINT, signal.SIGTERM):  # the terminal's Ctrl-C is for the driver alone
        signal.signal(each, signal.SIG_IGN)
    threading.Thread(target=end_with_the_driver, daemon=True).start()
    import dask
    import distributed

    count = str(settings.threads)
    # A worker's process reads these before it loads anything.
    environment = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OMP_WAIT_POLICY": "PASSIVE"}
    security = distributed.Security.temporary()
    with (
        dask.config.set({"distributed.nanny.pre-spawn-environ": environment}),
        quiet_logs(),
        contextlib.suppress(EOFError, OSError),
        distributed.LocalCluster(
            n_workers=settings.workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            silence_logs=SILENT,
            resources=dict(settings.resources or {}) or None,
        ) as cluster,
    ):
        pipe.send((cluster.scheduler_address, _certificates(security)))
        pipe.recv()


def _certificates(security: Any) -> dict[str, str]:
    """Return the certificates of a client, as text."""
    found = security.get_tls_config_for_role("client")
    return {"tls_ca_file": found["ca_file"], "tls_client_cert": found["cert"], "tls_client_key": found["key"]}
