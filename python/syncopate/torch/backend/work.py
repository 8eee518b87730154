"""Works: the objects that a collective returns to torch, to wait for, and their futures, which complete with the tensors."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.torch.device.thread_modes import in_callers_modes
from syncopate.torch.shared import errors

Future: TypeAlias = "torch.futures.Future[Any]"


class Operation(Protocol):
    """An operation that a Work waits for: a syncopate.Work, or one with the same methods."""

    def wait(self) -> None:
        """Return when it has ended; raise what it failed with."""

    def wait_for(self, bound_s: float, /) -> bool:
        """As wait, for this time at most; whether it has ended."""

    def ready(self) -> bool:
        """Whether it has ended, well or not."""

    def then(self, callback: Callable[[BaseException | None], object], /) -> None:
        """Call it with the error, or None, at the end."""


class Ended(Work):
    """An operation that ended before its call returned."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self.works: list[Operation] = []
        self._tensors = tensors

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Nothing is left to wait for."""
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True

    def is_success(self) -> bool:
        """It did not fail."""
        return True

    def result(self) -> Any:
        """The tensors with the result."""
        return self._tensors

    def get_future(self) -> Any:
        """A future that is complete."""
        return _future_for_torch(self)

    def future(self) -> Future:
        """The same, for Python."""
        future: Future = torch.futures.Future()
        future.set_result(self._tensors)
        return future


class Pending(Work):
    """Started operations of the group, and what is done with their results: once, on the first thread that needs them.

    That, and the callbacks of the future, run in the modes of torch that the caller had.
    """

    def __init__(self, works: Sequence[Operation], tensors: Sequence[torch.Tensor], finish: Callable[[], object] | None,
                 completions: ThreadPoolExecutor) -> None:
        super().__init__()
        self.works, self._tensors = works, tensors
        self._finish = in_callers_modes(finish) if finish is not None else None
        self._completions = completions
        self._once = threading.Lock()
        self._future: Future | None = None
        self._error: Exception | None = None
        if finish is not None:
            works[-1].then(lambda _: self._later(self._end_quietly))

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Return when the tensors hold the result; raise the error that names the rank."""
        return self._wait(timeout)

    def _wait(self, timeout: datetime.timedelta | None = None) -> bool:
        seconds = timeout.total_seconds() if timeout else 0
        deadline = time.monotonic() + seconds
        for work in self.works:
            if seconds <= 0:
                work.wait()
            elif not work.wait_for(max(deadline - time.monotonic(), 0)):
                raise syncopate.Timeout(f"the operation did not end within {seconds} s; it goes on")
        self._end()
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended, well or not; then the tensors hold the result."""
        if not all(work.ready() for work in self.works):
            return False
        self.is_success()
        return True

    def is_success(self) -> bool:
        """Whether the operation has ended without an error."""
        if not all(work.ready() for work in self.works):
            return False
        try:
            return self._wait()
        except Exception:  # noqa: BLE001 (`wait` raises it to every caller)
            return False

    def result(self) -> Any:
        """The tensors, which hold the result after `wait`."""
        return self._tensors

    def get_future(self) -> Any:
        """A future of the tensors."""
        return _future_for_torch(self)

    def future(self) -> Future:
        """The same, for Python. Its callbacks run on threads of their own, so they may wait for other operations. The error of one
        that was asked for in a backward pass is raised by that pass.
        """
        with self._once:
            if self._future is None:
                self._deferred = errors.Deferred()
                begun = self._promise()
                self._future = begun.then(self._value)
                complete = in_callers_modes(begun.set_result)
                self.works[-1].then(lambda _: self._later(complete, None))
        return self._future

    def _promise(self) -> Future:
        return torch.futures.Future()

    def _value(self, _: Future) -> Sequence[torch.Tensor]:
        with self._deferred:
            self.wait()
        return self._tensors

    def _later(self, call: Callable[..., object], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the process group or the interpreter has ended: no thread waits
            self._completions.submit(call, *arguments)

    def _end_quietly(self) -> None:
        with contextlib.suppress(Exception):  # `wait` raises it to every caller
            self._wait()

    def _end(self) -> None:
        with self._once:
            finish, self._finish = self._finish, None
            if finish is not None:
                try:
                    finish()
                except Exception as error:  # noqa: BLE001 (`wait` raises it; this may be another thread)
                    self._error = error
        if self._error is not None:
            raise self._error


class _Question(threading.local):
    """Set on a thread while Python asks for the object behind a Work."""

    asked = False
    answer: Ended | Pending | None = None


_question = _Question()
_placeholder: Future = torch.futures.Future()
_placeholder.set_result([])


def _future_for_torch(work: Ended | Pending) -> Future:
    """The result of `get_future`; while `_behind` asks, a placeholder, and the object itself goes into `_question`."""
    if _question.asked:
        _question.answer = work
        return _placeholder
    # torch's built-in hook that compresses to float16 demands a list of tensors as C++ knows it.
    needs_list = any(tensor.dtype == torch.float16 and tensor.is_cpu for tensor in work.result())
    return _as_list(work.future(), work.result()) if needs_list else work.future()


def _behind(work: Work, get_future: Callable[[Work], Future]) -> tuple[Ended | Pending | None, Future]:
    """The Ended or Pending behind a Work that torch returned (None if it is another backend's), and the Work's future.

    torch wraps what a Python backend returns, and the wrapper forwards nothing but `wait` and `get_future`.
    """
    _question.asked = True
    try:
        future = get_future(work)
    finally:
        _question.asked, found, _question.answer = False, _question.answer, None
    return found, future


def forward_to_python() -> None:
    """Let `is_completed`, `is_success`, `result` and `get_future` of torch's Work ask the object behind it, if it is of this backend."""
    get_future: Callable[[Work], Future] = Work.get_future
    if hasattr(get_future, "of_torch"):
        return

    def asking(name: str) -> Callable[[Work], Any]:
        of_torch = getattr(Work, name)

        def method(self: Work) -> Any:
            try:
                behind, _ = _behind(self, get_future)
            except RuntimeError:  # another backend's Work that has no future
                behind = None
            return of_torch(self) if behind is None else getattr(behind, name)()
        return method

    def future(self: Work) -> Future:
        behind, of_torch = _behind(self, get_future)
        return of_torch if behind is None else behind.future()

    future.of_torch = get_future  # type: ignore[attr-defined]  # a mark on the function, which this module looks for
    methods: dict[str, Any] = {name: asking(name) for name in ("is_completed", "is_success", "result")} | {"get_future": future}
    for name, method in methods.items():
        method.__doc__ = getattr(Work, name).__doc__
        setattr(Work, name, method)


def _as_list(future: Future, tensors: Sequence[torch.Tensor]) -> Future:
    """A future of the same tensors whose value is a list of tensors in C++, where Python's is an object of Python."""
    listed: Future = _script()(future, tensors)
    return listed


def _script() -> Any:
    """Compiled when it is first used; torch warns that TorchScript is to go, but has nothing else for this."""
    if not _compiled:
        def after(future: torch.jit.Future[torch.Tensor], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            torch.jit.wait(future)
            return tensors

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = torch.jit.script(after)

            def begin(future: torch.jit.Future[torch.Tensor], tensors: list[torch.Tensor]) -> torch.jit.Future[list[torch.Tensor]]:
                forked: torch.jit.Future[list[torch.Tensor]] = torch.jit.fork(scripted, future, tensors)
                return forked

            _compiled.append(torch.jit.script(begin))
    return _compiled[0]


_compiled: list[Any] = []
