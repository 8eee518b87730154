"""Threads that make calls in the order in which they were submitted, and that end before the interpreter does."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

import syncopate

_Result = TypeVar("_Result")
_Call: TypeAlias = "tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]"


class Threads:
    """`count` threads. `end` cancels the calls that have not begun.

    They are daemons: the interpreter joins other threads before it runs the functions of atexit, which end a call that waits
    for other ranks.
    """

    def __init__(self, count: int) -> None:
        self._calls: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        self._has_ended = False
        self._changing = threading.RLock()  # a signal's handler may call `end` during `submit`
        self._threads = [threading.Thread(target=_run, args=(self._calls,), daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, call: Callable[..., _Result], *arguments: Any, into: Future[_Result] | None = None) -> Future[_Result]:
        """A future of `call(*arguments)`: `into`, or a new one. Raises Misuse after `end`."""
        future: Future[_Result] = into or Future()
        with self._changing:
            if self._has_ended:
                raise syncopate.Misuse("the threads have ended; allowed: submit before end()")
            self._calls.put((future, call, arguments))
        return future

    def end(self) -> None:
        """Return when no call runs."""
        with self._changing:
            if not self._has_ended:
                self._has_ended = True
                self._cancel()
                self._stop()
        for thread in self._threads:
            thread.join()

    def _cancel(self) -> None:
        while not self._calls.empty():
            try:
                if (one := self._calls.get_nowait()) is not None:
                    one[0].cancel()
            except queue.Empty:
                break

    def _stop(self) -> None:
        for _ in self._threads:
            self._calls.put(None)

    __del__ = _stop


def _run(calls: queue.SimpleQueue[_Call | None]) -> None:
    while (one := calls.get()) is not None:
        future, call, arguments = one
        try:
            future.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 (it is raised where the result is asked for)
            future.set_exception(error)
        del one, future, call, arguments
