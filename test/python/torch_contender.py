"""A contender of `syncopate bench step` as the ranks of a test's job; the variable CONTENDER has its arguments."""

import contextlib
import io
import json
import os
import sys

from syncopate.torch import contender


def rows(rank, size, store):
    """Returns the rows that the rank prints."""
    os.environ |= {"SYNCOPATE_RANK": str(rank), "SYNCOPATE_SIZE": str(size)}
    sys.argv = ["contender", "--meeting", store.removeprefix("file://"), *json.loads(os.environ["CONTENDER"])]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        contender.main()
    return [json.loads(line) for line in printed.getvalue().splitlines()]
