"""Time without service after a server is killed: until a step of the worker ends that needs the process in its place.

    bench/failover.py BUILD [BUILD ...] --kills 100

Two servers with replicas and one worker of the build in the folder BUILD (build/release). A new process starts as soon as the old
one is killed. Builds take turns of ten kills. Prints a line of JSON for each kill: `away_s`, and `begin_s`, the time in which the
process begins to listen, which `away_s` contains.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ELEMENTS = 1 << 18
TURN = 10


class Server:
    """A process of syncopate-server, which listens when this returns."""

    def __init__(self, build, index, addresses, job):
        begin = time.monotonic()
        self.process = subprocess.Popen([Path(build) / "bin" / "syncopate-server", "--address", addresses[index], "--index", str(index),
                                         "--replicas", "1", "--servers", *addresses, "--job", job, "--log-level", "off", "--json"],
                                        stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.begin_s = time.monotonic() - begin

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def play(build, kills):
    """Trains with servers that die, and prints a line for each death."""
    import numpy as np

    import syncopate

    addresses, job = [f"@failover-{os.getpid()}-{index}" for index in (0, 1)], f"failover {os.getpid()}"
    servers = [Server(build, index, addresses, job) for index in (0, 1)]
    os.environ["SYNCOPATE_JOB"] = job
    weights = [np.zeros(ELEMENTS, np.float32) for _ in range(4)]
    worker = syncopate.TableWorker.connect(servers=addresses, worker=0, workers=1, consistency="bsp", optimizer="sgd",
                                           hyperparameters={"weight_decay": 0}, timeout_s=60)
    tables = [worker.create_table(f"table {i}", values) for i, values in enumerate(weights)]
    worker.start()
    steps = 0

    def step():
        nonlocal steps
        for table in tables:
            worker.update(table, np.full(ELEMENTS, -1, np.float32), 1)
        worker.clock(1)
        for table in tables:
            worker.sync(table)
        steps += 1

    try:
        for kill in range(kills):
            for _ in range(20):
                step()
            index = kill % 2
            servers[index].kill()
            begin = time.monotonic()
            servers[index] = Server(build, index, addresses, job)
            step()
            away_s = time.monotonic() - begin
            step()  # the replica of the other server is whole again
            print(json.dumps({"build": str(build), "away_s": away_s, "begin_s": servers[index].begin_s}), flush=True)
        wrong = sum(int((values != steps).sum()) for values in weights)
        if wrong:
            sys.exit(f"{wrong} weights do not have the updates of {steps} steps")
        worker.finish()
    finally:
        for server in servers:
            server.kill()


def take_turns(builds, kills):
    """Plays each build in a process of its own, which loads that build's package."""
    for begin in range(0, kills, TURN):
        for build in builds:
            subprocess.run([sys.executable, __file__, build, "--play", "--kills", str(min(TURN, kills - begin))], check=True,
                           env=os.environ | {"PYTHONPATH": str(Path(build) / "python")})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD", help="a build folder with bin/ and python/")
    parser.add_argument("--kills", type=int, default=100, help="of each build")
    parser.add_argument("--play", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        play(options.builds[0], options.kills)
    else:
        take_turns(options.builds, options.kills)


if __name__ == "__main__":
    main()
