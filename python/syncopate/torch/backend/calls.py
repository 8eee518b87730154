"""Making and refusing a call: the part that all collectives of the backend share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

import torch
from torch._C._distributed_c10d import Work

import syncopate
from syncopate.torch.backend.memory import OnDevice, PutBack, Refusal, described, exported
from syncopate.torch.backend.reduce_op import movable
from syncopate.torch.backend.work import Ended, Pending

if TYPE_CHECKING:
    from syncopate.torch.backend.device_calls import Staging

Call: TypeAlias = "tuple[str, torch.Tensor | None, Mapping[str, Any]]"  # arguments of Group.start: name, data and keywords
_Self = TypeVar("_Self", bound="Calls")
_Arguments = ParamSpec("_Arguments")


def collective(method: Callable[Concatenate[_Self, _Arguments], Work]) -> Callable[Concatenate[_Self, _Arguments], Work]:
    """A call that is refused before the library sees it still counts as a call, so that the ranks stay in step."""
    @functools.wraps(method)
    def call(self: _Self, *arguments: _Arguments.args, **keywords: _Arguments.kwargs) -> Work:
        try:
            try:
                return method(self, *arguments, **keywords)
            except OnDevice:
                return self._stage(call, *arguments, **keywords)
        except Refusal as refusal:
            self._staging.drain()
            self.group.refuse(f"{method.__name__}: {refusal}")
    return call


class Calls:
    """A base of the backend, which adds the group, the size and the rank."""

    group: syncopate.Group
    _staging: Staging
    _completions: ThreadPoolExecutor
    _called: int  # the number of calls

    if TYPE_CHECKING:
        def rank(self) -> int:
            """This rank."""

        def size(self) -> int:
            """The number of ranks."""

    def _run(self, calls: Sequence[Call], tensors: Sequence[torch.Tensor], opts: Any = None, finish: PutBack = None) -> Work:
        """Carry out `calls`, each the arguments of Group.start; then `finish()`, and the result is in `tensors`.

        A call that its caller waits for at once runs on the caller's own thread.
        """
        if self._staging.is_used:  # a call costs a fiftieth of a small all-reduce
            self._staging.drain()
        self._called += 1
        group = self.group
        if opts is not None and not getattr(opts, "asyncOp", True):
            for name, data, keywords in calls:
                getattr(group, name)(*exported(data), **keywords)
            if finish is not None:
                finish()
            return Ended(tensors)
        works = [group.start(name, *exported(data), **keywords) for name, data, keywords in calls]
        if not works:
            return Ended(tensors)
        return Pending(works, tensors, finish, self._completions)

    def _stage(self, call: Callable[..., Work], *arguments: Any, **keywords: Any) -> Work:
        """Make the call on the host's copies of its tensors: the first argument has the results, and one with inputs may follow."""
        read = 1 if len(arguments) > 1 and isinstance(arguments[1], torch.Tensor | list | tuple) else 0
        return self._staging.start(functools.partial(call, self), [*arguments, *keywords.values()], read=[read], written=[0])

    def own_part(self, count: int) -> slice:
        """This rank's place in a vector of parts of `count` elements."""
        return slice(self.rank() * count, (self.rank() + 1) * count)

    def _gathering(self, vector: torch.Tensor) -> tuple[Call, torch.Tensor]:
        """The call that gathers all ranks' vectors, and the rows in which they lie then."""
        rows = vector.new_empty((self.size(), vector.numel()))
        rows[self.rank()].copy_(vector)
        return ("allgather", movable(rows.view(-1))[0], {}), rows

    def require_part(self, part: torch.Tensor, whole: torch.Tensor) -> None:
        """Refuse unless the whole has a part for each rank."""
        if whole.numel() != self.size() * part.numel() or whole.dtype != part.dtype:
            raise Refusal(f"the whole has {described(whole)} and a part has {described(part)}; allowed: one type, and a whole as large as "
                          f"{self.size()} parts")

    def require_list(self, tensors: Sequence[torch.Tensor], like: torch.Tensor) -> None:
        """Refuse unless there is a tensor of the same type for each rank."""
        if len(tensors) != self.size() or any(tensor.dtype != like.dtype or tensor.is_cpu != like.is_cpu for tensor in tensors):
            if len({tensor.is_cpu for tensor in (like, *tensors)}) > 1:
                raise OnDevice
            raise Refusal(f"the list has {len(tensors)} tensors ({', '.join(map(described, tensors))}) and the single tensor has "
                          f"{described(like)}; allowed: {self.size()} tensors in the list, one for each rank, of the same type")


def all_of(finishes: Iterable[PutBack]) -> PutBack:
    """One function for those that are given, or None."""
    given = [finish for finish in finishes if finish is not None]
    return (lambda: [finish() for finish in given] and None) if given else None
