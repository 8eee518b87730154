"""Your own placement: server 0 keeps half as much of every table as each other server."""

import os

import numpy

import syncopate
import syncopate.testing


def sparing(table_bytes, servers, grain_bytes):
    """Every process computes the same shards, by table, then by range."""
    halves = 2 * servers - 1
    for table, size in enumerate(table_bytes):
        grains = size // grain_bytes
        ends = [grains * (2 * server + 1) // halves * grain_bytes for server in range(servers)]
        for server, (begin, end) in enumerate(zip([0, *ends], ends)):
            if begin < end:
                yield table, begin, end, server


def most_bytes(table_bytes, servers, grain_bytes):
    """Two shares of all bytes, and up to a grain of every table by rounding."""
    return 2 * sum(table_bytes) / (2 * servers - 1) + len(table_bytes) * grain_bytes


placement = syncopate.Placement("sparing", sparing, most_bytes=most_bytes)

if __name__ == "__main__":
    syncopate.serve([placement])  # does not return in a server of `syncopate run --servers 2 --own-servers`
    if broken := syncopate.testing.check_placement(placement):
        raise SystemExit(broken.text)
    weights = numpy.zeros(3000, numpy.float32)
    with syncopate.TableWorker.connect(placement=placement, optimizer="sgd") as worker:
        table = worker.create_table("weights", weights)
        worker.start()
        for _ in range(100):  # worker w pulls the weights to w, so that they end at the mean of the workers
            worker.sync(table)
            worker.update(table, weights - worker.worker, rate=0.1)
            worker.clock(rate=0.1)
        kept = [syncopate.status_of(address).kept_bytes for address in os.environ["SYNCOPATE_SERVERS"].split(",")]
        worker.finish()
        print(f"worker {worker.worker} of {worker.workers}: weights {weights[0]:.2f}; servers keep {kept} bytes")
