"""Calls with tensors of an accelerator: made on copies in the host's memory, in the order of all calls, and the results copied back."""

from __future__ import annotations

import datetime
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from typing import Any

import torch
from torch._C._distributed_c10d import Work

from syncopate.torch.backend.memory import SPARSE, Refusal
from syncopate.torch.backend.work import Future, Pending
from syncopate.torch.device.lane import Lane, is_accelerator, pinning_failure
from syncopate.torch.device.thread_modes import in_callers_modes
from syncopate.torch.shared.threads import Threads


class Staging:
    """One thread of a process group, which makes each call when its tensors have come to the host, in the order of the calls.

    A call with tensors on the CPU is made on its caller's thread, after `drain`.
    """

    def __init__(self, abort: Callable[[str], object], completions: futures.ThreadPoolExecutor) -> None:
        self._abort, self._completions = abort, completions
        self._lanes: dict[torch.device, Lane] = {}
        self._thread: Threads | None = None
        self._ident: int | None = None
        self._last: weakref.ref[futures.Future[Work]] | None = None  # the future of the last call
        self.is_used = False

    def drain(self) -> None:
        """Return when all calls until now have been made on the host; on the thread itself at once."""
        last = self._last() if self._last is not None else None
        if last is not None and not last.done() and threading.get_ident() != self._ident:
            futures.wait([last])

    def start(self, call: Callable[..., Work], arguments: list[Any], *, read: Sequence[int], written: Sequence[int]) -> StagedWork:
        """Begin `call(*arguments)` with host memory for the device's tensors in the arguments at these places. Raises Refusal."""
        device = _one_device([tensor for place in (*written, *read) for tensor in _tensors(arguments[place])])
        return self.start_on(device, call, arguments, read=read, written=written)

    def start_on(self, device: torch.device, call: Callable[..., Work], arguments: list[Any], *, read: Sequence[int] = (),
                 written: Sequence[int] = ()) -> StagedWork:
        """The same, also without tensors: the call is made after what the device's current stream has been given."""
        if device not in self._lanes:
            _require_usable(device)
            self._lanes[device] = Lane(device)
        try:
            copies = Copies(self._lanes[device])
            on_host = [_Asynchronous(one) if hasattr(one, "asyncOp") else one for one in arguments]
            for place in {*read, *written}:
                on_host[place] = copies.down(arguments[place], is_read=place in read, is_written=place in written)
            copies.end_down()
        except Exception as error:
            self._abort(str(error))  # other ranks do not know of an error of this device
            raise
        if self._thread is None:
            self._thread, self.is_used = Threads(1), True
            self._ident = self._thread.submit(threading.get_ident).result()
        made = self._thread.submit(in_callers_modes(self._make), copies, call, on_host)
        self._last = weakref.ref(made)
        return StagedWork(made, copies, [tensor for place in written or read for tensor in _tensors(arguments[place])], self._completions)

    def _make(self, copies: Copies, call: Callable[..., Work], arguments: list[Any]) -> Work:
        try:
            copies.arrive()
        except Exception as error:
            self._abort(str(error))
            raise
        return call(*arguments)

    def close(self) -> None:
        """Return when all calls until now have been made; no other may follow."""
        if self._thread is not None:
            self.drain()
            self._thread.end()


class Copies:
    """The tensors of one call: on the device, and in pinned memory of the host."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.returned: torch.Event | None = None
        self._written: list[tuple[torch.Tensor, torch.Tensor]] = []
        lane.down_stream.wait_stream(torch.accelerator.current_stream(lane.device))

    def down(self, argument: Any, *, is_read: bool, is_written: bool) -> Any:
        """The argument with pinned memory for each tensor in it, to which the copy is begun if the call reads the tensor."""
        if isinstance(argument, list | tuple):
            return [self.down(one, is_read=is_read, is_written=is_written) for one in argument]
        tensor = argument.detach()
        host = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        if is_read:
            with self.lane.down_stream:
                host.copy_(tensor, non_blocking=True)
            tensor.record_stream(self.lane.down_stream)
        if is_written:
            self._written.append((tensor, host))
        return host

    def end_down(self) -> None:
        """All copies down have begun. `arrive` waits for the current stream too, if nothing is copied: it may still use a result's memory."""
        self._arrived = self.lane.mark(self.lane.down_stream)

    def arrive(self) -> None:
        """Return when the host's memory has the values."""
        self._arrived.synchronize()

    def up(self) -> None:
        """Begin to copy the results into the device's tensors; `returned` is the event after them."""
        with self.lane.up_stream:
            for tensor, host in self._written:
                tensor.copy_(host, non_blocking=True)
                tensor.record_stream(self.lane.up_stream)
        self._written = []
        self.returned = self.lane.mark(self.lane.up_stream)


class StagedWork(Pending):
    """A call of which `made` is the future: the Ended or Pending on the host, whose results are then copied to the device.

    `wait` returns when the copy up has been put into its stream, and lets the caller's current stream wait for its end.
    """

    def __init__(self, made: futures.Future[Any], copies: Copies, tensors: Sequence[torch.Tensor],
                 completions: futures.ThreadPoolExecutor) -> None:
        self._copies = copies

        def finish() -> None:
            made.result().wait()
            copies.up()
        super().__init__([_Making(made)], tensors, finish, completions)

    def wait(self, timeout: datetime.timedelta | None = None) -> bool:
        """Let the current stream wait until the tensors hold the result; raise the error that names the rank."""
        self._wait(timeout)
        if self._copies.returned is not None:
            torch.accelerator.current_stream(self._copies.lane.device).wait_event(self._copies.returned)
        return True

    def is_completed(self) -> bool:
        """Whether the operation has ended, well or not; then the device's memory holds the result."""
        return super().is_completed() and (self._copies.returned is None or self._copies.returned.query())

    def is_success(self) -> bool:
        """Whether the operation has ended without an error, and the device's memory holds the result."""
        return super().is_success() and self._copies.returned is not None and self._copies.returned.query()

    def _promise(self) -> Future:
        return torch.futures.Future(devices=[self._copies.lane.device])


class _Making:
    """A call that the thread makes, and the operations that it starts, as one syncopate.Work."""

    def __init__(self, made: futures.Future[Any]) -> None:
        self._made = made

    def wait(self) -> None:
        """Return when all have ended. Raises what the call or one of them failed with."""
        for work in self._made.result().works:
            work.wait()

    def wait_for(self, seconds: float) -> bool:
        """Whether they end within that time."""
        deadline = time.monotonic() + seconds
        futures.wait([self._made], seconds)
        return self._made.done() and all(work.wait_for(max(deadline - time.monotonic(), 0)) for work in self._made.result().works)

    def ready(self) -> bool:
        """Whether they have ended, well or not."""
        return self._made.done() and (self._made.exception() is not None or all(work.ready() for work in self._made.result().works))

    def then(self, call: Callable[[BaseException | None], object]) -> None:
        """Call it with the error, or None, at the end."""
        def made(future: futures.Future[Any]) -> None:
            if future.exception() is None and future.result().works:
                future.result().works[-1].then(call)
            else:
                call(future.exception())
        self._made.add_done_callback(made)


class _Asynchronous:
    """The options of a call, which its thread does not wait for."""

    asyncOp = True  # noqa: N815 (torch's name)

    def __init__(self, options: Any) -> None:
        self._options = options

    def __getattr__(self, name: str) -> Any:
        return getattr(self._options, name)


def _tensors(argument: Any) -> Iterator[torch.Tensor]:
    """All tensors in the argument: one, a list, or a list of lists."""
    if isinstance(argument, torch.Tensor):
        yield argument
    elif isinstance(argument, list | tuple):
        for one in argument:
            yield from _tensors(one)


def _one_device(tensors: list[torch.Tensor]) -> torch.device:
    """The device of all; refuses those of several, and sparse ones."""
    for tensor in tensors:
        if tensor.device != tensors[0].device:
            raise Refusal(f"one tensor is on {tensors[0].device} and another on {tensor.device}; allowed: all tensors of a call on one device")
        if tensor.layout is not torch.strided:
            raise Refusal(f"a sparse tensor ({tensor.layout}) on {tensor.device} {SPARSE}")
    return tensors[0].device


def _require_usable(device: torch.device) -> None:
    """Refuse a device whose tensors cannot be copied in streams and through pinned memory."""
    if not is_accelerator(device):
        found = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
        raise Refusal(f"a tensor on {device} cannot be used here; allowed: tensors on the CPU, or on an accelerator that this PyTorch finds "
                      f"(torch.accelerator.current_accelerator() is {found})")
    reason = pinning_failure()
    if reason is not None:
        raise Refusal(f"a tensor on {device}, for which there is no pinned memory ({reason}); allowed: accelerators with pinned memory; else "
                      "pass tensor.cpu(), or raise the limit of locked memory (ulimit -l)")
