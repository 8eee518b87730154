"""`await work`: an asyncio program waits for an operation without a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    from syncopate import _core


def steps(work: _core.Work) -> Generator[Any, None, None]:
    """The generator behind Work.__await__: the group's thread wakes the loop when the operation has ended."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def complete(error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def ended(error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: no task waits
            loop.call_soon_threadsafe(complete, error)

    work.then(ended)
    yield from future
    work.wait()  # over; it may let go of its arrays
