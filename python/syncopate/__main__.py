"""`python -m syncopate` is the command line `syncopate`, which the package carries."""

import os
import sys

from syncopate.command import PROGRAM


def main():
    """Become the program, with the same arguments, output and exit code."""
    os.environ.setdefault("SYNCOPATE_PYTHON", sys.executable)
    os.execv(PROGRAM, ["syncopate", *sys.argv[1:]])


if __name__ == "__main__":
    main()
