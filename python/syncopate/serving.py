"""Programs that are workers and servers of a job, for components of their own."""

from __future__ import annotations

from collections.abc import Iterable

from syncopate import _core


def serve(
    catalogue: Iterable[_core.Codec | _core.Placement | _core.Consistency | _core.Storage | _core.Policy | _core.Rule] = (),
) -> None:
    """Serve, if `syncopate run --servers K --own-servers` started this process as a server; it ends when all workers have.

    catalogue: the components of its own that the job names. In a worker it returns at once. Raises as Server.start does, and
    what a component raised.
    """
    server = _core.Server.start_from_environment(catalogue=list(catalogue))
    if server is None:
        return
    with server:
        while not server.wait_for_end():
            pass
    raise SystemExit(0)
