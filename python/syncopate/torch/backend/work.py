"""Works: the objects that a collective returns to torch, to wait for, and their futures, which complete with the tensors."""

import contextlib
import threading
import time
import warnings

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.torch.device.thread_modes import in_callers_modes
from syncopate.torch.shared import errors


class Ended(Work):
    """An operation that ended before its call returned."""

    def __init__(self, tensors):
        super().__init__()
        self.works, self._tensors = [], tensors

    def wait(self, timeout=None):
        """Nothing is left to wait for."""
        return True

    def is_completed(self):
        """It is."""
        return True

    def is_success(self):
        """It did not fail."""
        return True

    def result(self):
        """The tensors with the result."""
        return self._tensors

    def get_future(self):
        """A future that is complete."""
        return _future_for_torch(self)

    def future(self):
        """The same, for Python."""
        future = torch.futures.Future()
        future.set_result(self._tensors)
        return future


class Pending(Work):
    """Started operations of the group, and what is done with their results: once, on the first thread that needs them.

    That, and the callbacks of the future, run in the modes of torch that the caller had.
    """

    def __init__(self, works, tensors, finish, completions):
        super().__init__()
        self.works, self._tensors, self._finish = works, tensors, finish and in_callers_modes(finish)
        self._completions = completions
        self._once, self._future, self._error = threading.Lock(), None, None
        if finish is not None:
            works[-1].then(lambda _: self._later(self._end_quietly))

    def wait(self, timeout=None):
        """Return when the tensors hold the result; raise the error that names the rank."""
        return self._wait(timeout)

    def _wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else 0
        deadline = time.monotonic() + seconds
        for work in self.works:
            if seconds <= 0:
                work.wait()
            elif not work.wait_for(max(deadline - time.monotonic(), 0)):
                raise syncopate.Timeout(f"the operation did not end within {seconds} s; it goes on")
        self._end()
        return True

    def is_completed(self):
        """Whether the operation has ended, well or not; then the tensors hold the result."""
        if not all(work.ready() for work in self.works):
            return False
        self.is_success()
        return True

    def is_success(self):
        """Whether the operation has ended without an error."""
        if not all(work.ready() for work in self.works):
            return False
        try:
            return self._wait()
        except Exception:  # noqa: BLE001 (`wait` raises it to every caller)
            return False

    def result(self):
        """The tensors, which hold the result after `wait`."""
        return self._tensors

    def get_future(self):
        """A future of the tensors."""
        return _future_for_torch(self)

    def future(self):
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

    def _promise(self):
        return torch.futures.Future()

    def _value(self, _):
        with self._deferred:
            self.wait()
        return self._tensors

    def _later(self, call, *arguments):
        with contextlib.suppress(RuntimeError):  # the process group or the interpreter has ended: no thread waits
            self._completions.submit(call, *arguments)

    def _end_quietly(self):
        with contextlib.suppress(Exception):  # `wait` raises it to every caller
            self._wait()

    def _end(self):
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

    asked, answer = False, None


_question = _Question()
_placeholder = torch.futures.Future()
_placeholder.set_result([])


def _future_for_torch(work):
    """The result of `get_future`; while `_behind` asks, a placeholder, and the object itself goes into `_question`."""
    if _question.asked:
        _question.answer = work
        return _placeholder
    # torch's built-in hook that compresses to float16 demands a list of tensors as C++ knows it.
    needs_list = any(tensor.dtype == torch.float16 and tensor.is_cpu for tensor in work.result())
    return _as_list(work.future(), work.result()) if needs_list else work.future()


def _behind(work, get_future):
    """The Ended or Pending behind a Work that torch returned (None if it is another backend's), and the Work's future.

    torch wraps what a Python backend returns, and the wrapper forwards nothing but `wait` and `get_future`.
    """
    _question.asked = True
    try:
        future = get_future(work)
    finally:
        _question.asked, found, _question.answer = False, _question.answer, None
    return found, future


def forward_to_python():
    """Let `is_completed`, `is_success`, `result` and `get_future` of torch's Work ask the object behind it, if it is of this backend."""
    get_future = Work.get_future
    if hasattr(get_future, "of_torch"):
        return

    def asking(name):
        of_torch = getattr(Work, name)

        def method(self):
            try:
                behind, _ = _behind(self, get_future)
            except RuntimeError:  # another backend's Work that has no future
                behind = None
            return of_torch(self) if behind is None else getattr(behind, name)()
        return method

    def future(self):
        behind, of_torch = _behind(self, get_future)
        return of_torch if behind is None else behind.future()

    future.of_torch = get_future
    methods = {name: asking(name) for name in ("is_completed", "is_success", "result")} | {"get_future": future}
    for name, method in methods.items():
        method.__doc__ = getattr(Work, name).__doc__
        setattr(Work, name, method)


def _as_list(future, tensors):
    """A future of the same tensors whose value is a list of tensors in C++, where Python's is an object of Python."""
    return _script()(future, tensors)


def _script():
    """Compiled when it is first used; torch warns that TorchScript is to go, but has nothing else for this."""
    if not _compiled:
        def after(future: torch.jit.Future[torch.Tensor], tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            torch.jit.wait(future)
            return tensors

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scripted = torch.jit.script(after)

            def begin(future: torch.jit.Future[torch.Tensor], tensors: list[torch.Tensor]) -> torch.jit.Future[list[torch.Tensor]]:
                return torch.jit.fork(scripted, future, tensors)

            _compiled.append(torch.jit.script(begin))
    return _compiled[0]


_compiled = []
