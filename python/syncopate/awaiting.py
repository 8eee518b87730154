"""`await work`: an asyncio program waits for an operation without a thread of its own."""

import asyncio
import contextlib


def steps(work):
    """The generator behind Work.__await__: the group's thread wakes the loop when the operation has ended."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(error):
        if future.cancelled():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    def ended(error):
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: no task waits
            loop.call_soon_threadsafe(settle, error)

    work.then(ended)
    yield from future
    work.wait()  # over; it may let go of its arrays
