"""Hooks of torch that keep no object alive, can be pickled, and have no effect in a forked process."""

import os
import weakref

_attached = weakref.WeakSet()


class Hook:
    """Calls a method with these arguments, whatever torch passes, as long as its object lives.

    A copy or a pickle of it calls nothing, so that a module with hooks can be saved and copied.
    """

    def __init__(self, method=None, *arguments):
        self._method, self._arguments = method and weakref.WeakMethod(method), arguments

    def __call__(self, *_):
        """Call it; nothing is returned, which torch would take for a result."""
        method = self._method and self._method()
        if method is not None:
            method(*self._arguments)

    def __reduce__(self):
        return Hook, ()


def detach_in_forks(attached):
    """In a process forked from this one call `attached.detach()`: exchanges, and memory of the group, are not inherited."""
    _attached.add(attached)


def _detach_all():
    for attached in list(_attached):
        attached.detach()


os.register_at_fork(after_in_child=_detach_all)
