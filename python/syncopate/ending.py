"""The end of a program: groups are left before the interpreter ends, and aborted with the reason if it failed."""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Sequence

from syncopate import _core

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_groups: weakref.WeakSet[_core.Group] = weakref.WeakSet()
_others: weakref.WeakSet[Any] = weakref.WeakSet()


def remember(made: Any) -> None:
    """Take note of what was made: a group, a list of groups, a synchronizer, a server or its worker, or None."""
    for one in made if isinstance(made, list) else [made]:
        if one is not None:
            (_groups if hasattr(one, "abort") else _others).add(one)


@atexit.register
def leave() -> None:
    """Leave every group that is still joined: in order, or aborted with the exception that ended the program."""
    failure = getattr(sys, "last_value", None)
    groups = [group for group in _groups if not group.closed]
    if failure is not None:
        for group in groups:
            group.abort(repr(failure))
    close_together([*_others, *groups])


def close_together(ones: Sequence[object]) -> None:
    """Close all at the same time: each waits for its own started work, for which another rank may wait in another of them."""
    _core.close_together(ones)
