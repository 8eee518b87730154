"""The examples run as they stand, as jobs of several ranks."""

import re
import subprocess
import sys
from pathlib import Path

from conftest import own_environment

from syncopate.command import PROGRAM

EXAMPLES = Path(__file__).parents[2] / "example" / "python"


def run(name, ranks, *options):
    """The output of the ranks of `syncopate run`, by rank."""
    done = subprocess.run([PROGRAM, "run", "-n", str(ranks), *options, "--", sys.executable, str(EXAMPLES / name)], check=False,
                          capture_output=True, text=True, env=own_environment())
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^\[(\d)\] (.*)$", done.stdout, re.MULTILINE))


def test_the_average_of_four_ranks():
    assert run("average.py", 4) == {str(rank): f"rank {rank} of 4: average 1.5" for rank in range(4)}


def test_training_ends_with_equal_weights_and_a_smaller_loss():
    ends = [re.search(r"loss (\S+), sum of weights (\S+)", line).groups() for line in run("synchronizer.py", 3).values()]
    assert len(ends) == 3 and len({weights for _, weights in ends}) == 1
    assert all(float(loss) < 2.0 for loss, _ in ends)


def test_the_codec_in_python_has_the_bits_of_the_librarys():
    assert all("are equal" in line for line in run("own_codec.py", 3).values())
    assert len((EXAMPLES / "own_codec.py").read_text(encoding="utf-8").splitlines()) <= 40


def test_a_placement_in_python_divides_the_tables_of_a_job():
    ends = run("own_placement.py", 2, "--servers", "2", "--own-servers")
    assert ends == {str(worker): f"worker {worker} of 2: weights 0.50; servers keep [4000, 8000] bytes" for worker in range(2)}


def test_a_consistency_model_in_python_lets_the_fastest_worker_go_on():
    ends = run("own_consistency.py", 2, "--servers", "2", "--own-servers")
    assert len(ends) == 2 and all("weights 0.5," in end for end in ends.values()), ends
    assert all(int(re.search(r"at most (\d) steps stale", end)[1]) <= 4 for end in ends.values())
    own = [EXAMPLES / f"own_{name}.py" for name in ("placement", "consistency", "call_sites", "storage")]
    assert all(len(path.read_text(encoding="utf-8").splitlines()) <= 60 for path in own)


def test_models_in_python_decide_about_parts_clocks_and_unasked_weights():
    ends = run("own_call_sites.py", 2, "--servers", "2", "--own-servers")
    assert ends == {str(worker): f"worker {worker} of 2: weights 0.5" for worker in range(2)}


def test_storages_in_python_keep_weights_as_the_program_has_them():
    ends = run("own_storage.py", 2, "--servers", "2", "--own-servers")
    assert ends == {str(worker): f"worker {worker} of 2: weights 0.5 of float64" for worker in range(2)}


def test_the_page_shows_the_examples():
    page = (EXAMPLES.parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    sources = [path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))]
    assert shown[0] == sources[0]
    excerpts = [block for block in shown if block.startswith("    ")]
    assert len(excerpts) >= 3 and all(any(block in source for source in sources) for block in excerpts)
