#!/usr/bin/env python3
"""Rows of embeddings that are read and updated a second: two workers and two parameter servers, and DistributedDataParallel over Gloo.

    python bench/embeddings.py          # interleaved blocks of both, and their medians

Every step reads the rows of a batch of random ids and adds a gradient to each of them. A row that is read counts one, and so
does a row that is updated. The contender is torch.nn.EmbeddingBag(sparse=True) with a bag for each id.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

WORKERS, SERVERS, UNTIMED_S = 2, 2, 1.0


def batches(given, rank):
    """The ids of this worker's batches, drawn before they are timed."""
    draw = numpy.random.default_rng(rank)
    return [draw.integers(0, given.ids, given.batch) for _ in range(16)]


def rows_per_second(given, rank, step):
    """Make steps until the warm-up is over, then for the time of a block, and return this worker's rate."""
    ids, begin, steps = batches(given, rank), None, 0
    ready = time.perf_counter() + UNTIMED_S
    while begin is None or time.perf_counter() < begin + given.seconds:
        if begin is None and time.perf_counter() >= ready:
            begin, steps = time.perf_counter(), 0
        step(ids[steps % len(ids)])
        steps += 1
    return 2 * steps * given.batch / (time.perf_counter() - begin)


def meet(worker, table):
    """Return when all workers have called it, so that their blocks are at the same time: each adds 1 to a row."""
    came = numpy.zeros(1, numpy.float32)
    worker.push_rows(table, numpy.zeros(1, int), came - 1, 1.0)
    while came[0] < worker.workers:
        worker.pull_rows(table, numpy.zeros(1, int), came)


def served(given):
    """A worker under `syncopate run --servers`; before, all rows have been updated once, so that servers keep them."""
    import syncopate

    worker = syncopate.TableWorker.connect(consistency="tap")
    table = worker.create_rows("rows", given.width, rule=given.rule)
    ready = worker.create_rows("ready", 1, scale=0.0)
    worker.start()
    rows, gradients = (numpy.zeros((given.batch, given.width), numpy.float32) for _ in range(2))
    gradients += 1e-3
    for begin in range(worker.worker * given.batch, given.ids, worker.workers * given.batch):
        worker.push_rows(table, numpy.arange(begin, begin + given.batch), gradients, 0.01)
    worker.flush()
    meet(worker, ready)

    def step(ids):
        worker.pull_rows(table, ids, rows)
        worker.push_rows(table, ids, gradients, 0.01)

    rate = rows_per_second(given, worker.worker, step)
    worker.finish()
    return rate


def ddp(given):
    """A rank of DistributedDataParallel. All ranks make the same number of steps, because each waits for the others."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", store=dist.FileStore(given.meeting, WORKERS), rank=rank, world_size=WORKERS)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.EmbeddingBag(given.ids, given.width, mode="sum", sparse=True))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    ids = [torch.from_numpy(batch) for batch in batches(given, rank)]

    def step(number):
        optimizer.zero_grad()
        net(ids[number % len(ids)][:, None]).sum().backward()
        optimizer.step()

    step(0)
    begin = time.perf_counter()
    for number in range(given.ddp_steps):
        step(number)
    rate = 2 * given.ddp_steps * given.batch / (time.perf_counter() - begin)
    dist.barrier()
    dist.destroy_process_group()
    return rate


def job_of(part, arguments, meeting):
    """The rows that all workers of a job read and update a second."""
    command = [sys.executable, __file__, "--part", part, "--meeting", meeting, *arguments]
    if part == "served":
        from syncopate.command import PROGRAM
        run = [PROGRAM, "run", "-n", str(WORKERS), "--servers", str(SERVERS), "--", *command]
        printed = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    else:
        jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"RANK": str(rank)}) for rank in range(WORKERS)]
        printed = "".join(job.communicate()[0] for job in jobs)
    rates = [json.loads(line[line.index("{"):])["rows_per_s"] for line in printed.splitlines() if "rows_per_s" in line]
    if len(rates) != WORKERS:
        raise SystemExit(f"{part}: {len(rates)} of {WORKERS} workers ended:\n{printed}")
    return sum(rates)


def main():
    """A worker of one part, or blocks of both parts in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ids", type=int, default=500_000, help="rows of the table")
    parser.add_argument("--batch", type=int, default=16_384, help="ids of a step of one worker")
    parser.add_argument("--width", type=int, default=64, help="floats of a row")
    parser.add_argument("--rule", default="sgd", help="of the servers")
    parser.add_argument("--seconds", type=float, default=3.0, help="of a block of the servers")
    parser.add_argument("--ddp-steps", type=int, default=20, help="of a block of DDP; 0: without DDP")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--part", choices=["served", "ddp"], help=argparse.SUPPRESS)
    parser.add_argument("--meeting", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps({"rows_per_s": {"served": served, "ddp": ddp}[given.part](given)}), flush=True)
        return
    parts = ["served", "ddp"] if given.ddp_steps else ["served"]
    rates = {part: [] for part in parts}
    for _ in range(given.blocks):
        for part in parts:
            with tempfile.TemporaryDirectory() as folder:
                rates[part].append(job_of(part, sys.argv[1:], f"{folder}/meeting"))
    for part, found in rates.items():
        print(
            f"{part}: {statistics.median(found) / 1e6:.3f} million rows a second ({min(found) / 1e6:.3f} to {max(found) / 1e6:.3f}, {len(found)}"
            " blocks)"
        )


if __name__ == "__main__":
    main()
