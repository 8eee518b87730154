"""Names of Horovod's interface that are not supported; using one raises Misuse with the alternative."""

from __future__ import annotations

from typing import NoReturn

import syncopate


class Rejected:
    """Raises when it is called, when an attribute of it is read, and as a reduction."""

    def __init__(self, name: str, alternative: str) -> None:
        self._text = f"syncopate.horovod does not have {name}; use {alternative}"

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Raise Misuse with the name and the alternative."""
        raise syncopate.Misuse(self._text)

    __call__ = refuse

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):  # Python itself asks, as copy and inspect do
            raise AttributeError(attribute)
        self.refuse()
