"""`python -m syncopate` is the command line `syncopate`, which the package carries; so are the commands of an installed wheel."""

from __future__ import annotations

import os
import sys

from syncopate.command import PROGRAM

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Become the program, with the same arguments, output and exit code."""
    become(*sys.argv[1:])


def server() -> NoReturn:
    """Become `syncopate server`, which starts the program syncopate-server, or names what the package was built without."""
    become("server", *sys.argv[1:])


def become(*words: str) -> NoReturn:
    """Replace this process by the command line with these words."""
    os.environ.setdefault("SYNCOPATE_PYTHON", sys.executable)
    os.execv(PROGRAM, ["syncopate", *words])


if __name__ == "__main__":
    main()
