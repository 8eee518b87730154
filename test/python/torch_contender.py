"""A contender of `syncopate bench step` as the ranks of a test's job; the variable CONTENDER has its arguments."""

import contextlib
import io
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "bench/contender"))

import pytorch


def rows(rank, size, store):
    """Returns the rows that the rank prints."""
    os.environ |= {"SYNCOPATE_RANK": str(rank), "SYNCOPATE_SIZE": str(size)}
    sys.argv = ["pytorch.py", "--meeting", store.removeprefix("file://"), *json.loads(os.environ["CONTENDER"])]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        pytorch.main()
    return [json.loads(line) for line in printed.getvalue().splitlines()]
