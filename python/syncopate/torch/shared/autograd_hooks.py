"""Hooks of torch that keep no object alive, can be pickled, and have no effect in a forked process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Attached(Protocol):
    """An object that has hooks in a model."""

    def detach(self) -> None:
        """Remove them."""


_attached: weakref.WeakSet[Attached] = weakref.WeakSet()


class Hook:
    """Calls a method with these arguments, whatever torch passes, as long as its object lives.

    A copy or a pickle of it calls nothing, so that a module with hooks can be saved and copied.
    """

    def __init__(self, method: Callable[..., object] | None = None, *arguments: object) -> None:
        self._method, self._arguments = weakref.WeakMethod(method) if method else None, arguments

    def __call__(self, *_: object) -> None:
        """Call it; nothing is returned, which torch would take for a result."""
        method = self._method and self._method()
        if method is not None:
            method(*self._arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return Hook, ()


def detach_in_forks(attached: Attached) -> None:
    """In a process forked from this one call `attached.detach()`: exchanges, and memory of the group, are not inherited."""
    _attached.add(attached)


def _detach_all() -> None:
    for attached in list(_attached):
        attached.detach()


os.register_at_fork(after_in_child=_detach_all)
