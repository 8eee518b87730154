"""The command line inside the package: its path, and the rows that it answers with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

from syncopate import _core

TYPE_CHECKING = False  # as typing has it, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

PROGRAM = str(Path(__file__).parent / "bin" / "syncopate")


def rows(*arguments: object) -> list[dict[str, Any]]:
    """Run `syncopate ARGUMENTS --json` and return its rows as dicts; an error row is raised as the exception that it names."""
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], capture_output=True, text=True, check=False)
    found: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    failed = next((row for row in found if "error" in row), None)
    if failed:
        raise exception_of(failed)
    if done.returncode:
        raise _core.SystemFailure(f"syncopate {' '.join(map(str, arguments))} ended with {done.returncode}: {done.stderr.strip()}")
    return found


def exception_of(row: Mapping[str, Any]) -> _core.Error:
    """The exception that a row `{"error", "kind", "rank", "peer", "operation", "tensor"}` describes."""
    raised: _core.Error = getattr(_core, row.get("kind", "Error"), _core.Error)(row["error"])
    for attribute in ("rank", "peer", "operation", "tensor"):
        setattr(raised, attribute, row.get(attribute))
    return raised
