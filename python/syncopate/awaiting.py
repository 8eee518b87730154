"""`await work`: an asyncio program waits for an operation without a thread of its own."""

import asyncio


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
        try:
            loop.call_soon_threadsafe(settle, error)
        except RuntimeError:  # the loop was closed meanwhile: no task waits
            pass

    work.then(ended)
    yield from future
    work.wait()  # over; it may let go of its arrays
