"""The example gpt.py in the forms in which users run such a script, one after another on the ranks of one job."""

import contextlib
import io
import re
import sys
from pathlib import Path
from unittest import mock

import torch.distributed as dist

EXAMPLES = Path(__file__).parents[2] / "example" / "python"
WRAPS = {"backend": "--wrap torch --backend syncopate", "class": "--wrap syncopate --backend gloo", "hook": "--wrap hook --backend gloo"}
SMALL = "--steps 6 --width 16 --layers 1 --batch 2 --bucket-mb 0.01"


def digest_of(arguments, meeting):
    """Run the script; the digest of its weights."""
    rank, size, store = meeting
    sys.path.insert(0, str(EXAMPLES))
    import gpt
    join, printed = dist.init_process_group, io.StringIO()
    with mock.patch.object(dist, "init_process_group", lambda backend: join(backend, init_method=store, rank=rank, world_size=size)), \
         mock.patch.object(sys, "argv", ["gpt.py", *arguments.split()]), contextlib.redirect_stdout(printed):
        gpt.main()
    return re.search(r"weights (\w+)", printed.getvalue())[1]


def everything(rank, size, store):
    """Returns digests by form."""
    folder, found = Path(store.removeprefix("file://")).parent, {}

    def run(name, arguments):
        found[name] = digest_of(f"{SMALL} {arguments}", (rank, size, f"{store}-{name.replace(' ', '-')}"))

    for name, wrap in WRAPS.items():
        codec = "--codec topk:0.1 --warmup-steps 3" if name != "backend" else ""
        run(f"{name} once", f"{wrap} {codec} --accumulate 2 --amp --record {folder}/{name}")
        run(f"{name} begun", f"{wrap} {codec} --accumulate 2 --amp --steps 3 --checkpoints {folder}/kept-{name}")
        run(f"{name} resumed", f"{wrap} {codec} --accumulate 2 --amp --checkpoints {folder}/kept-{name}")
        buckets = "" if name == "class" else "--bucket-mb 1"  # torch.compile accepts no smaller ones of torch's class
        run(f"{name} compiled", f"{wrap} {codec} --compile aot_eager {buckets}")
        run(f"{name} plain", f"{wrap} {codec}")
    run("measured buckets", f"{WRAPS['class']} --compile aot_eager --bucket-mb 0")
    run("torch alone", "--wrap torch --backend gloo")
    return found, {name: (folder / name).exists() for name in WRAPS}
