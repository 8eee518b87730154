"""Clean: keys of what a slow check found nothing in, kept for the next runs, in this clone or another."""

import hashlib
import os
import time
from pathlib import Path

KEPT_SECONDS = 60 * 86400  # since a key was last asked for


def digest(text, paths):
    """A key: a digest of a text and of the contents of files."""
    whole = hashlib.sha256(text.encode())
    for path in paths:
        whole.update(hashlib.sha256(Path(path).read_bytes()).digest())
    return whole.hexdigest()


class Clean:
    """One empty file for each key, in the folder of the user's caches."""

    def __init__(self, name, caches=None):
        caches = Path(caches or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._folder = caches / "syncopate" / name

    def has(self, key):
        """Whether the key was added before. None is the key of what must be looked at each time."""
        if key is None or not (self._folder / key).is_file():
            return False
        (self._folder / key).touch()
        return True

    def add(self, key):
        """Keeps a key; forgets those that have not been asked for in KEPT_SECONDS."""
        if key is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / key).touch()
        for path in self._folder.iterdir():
            if path.stat().st_mtime < time.time() - KEPT_SECONDS:
                path.unlink(missing_ok=True)
