"""Your own storages: what a worker and a server keep, and how updates and weights enter it. One class for each place."""

import numpy

import syncopate.testing


class Clipped:
    """Transmit buffer: a step adds at most 10 to what a worker sends, in either direction."""

    def accumulate(self, block, update, accumulated):
        accumulated += numpy.clip(update, -10, 10)


class Middle:
    """Server storage: the median of the workers' updates."""

    def combine(self, block, updates, combined):
        combined[:] = numpy.median(updates, axis=0)


class Heavy:
    """Server storage: a server keeps a velocity for each weight."""

    kept = 1

    def apply(self, block, combined, rate, kept, weights):
        kept[:] = 0.5 * kept + combined
        weights -= numpy.float32(rate) * kept


class Doubles:
    """Gradient, worker storage and apply buffer: the program has doubles (or a tensor on a device), and smooths its weights."""

    def load(self, memory, values):
        values[:] = memory

    def store(self, values, memory):
        memory[:] = values

    def adopt(self, block, arrived, weights):
        weights += 0.5 * (arrived - weights)


STORAGES = [syncopate.Storage(kind.__name__.lower(), kind) for kind in (Clipped, Middle, Heavy, Doubles)]

if __name__ == "__main__":
    syncopate.serve(STORAGES)  # does not return in a server of `syncopate run --servers 2 --own-servers`
    for storage in STORAGES:
        assert syncopate.testing.check_storage(storage, cases=5) is None
    weights = numpy.zeros(1000)  # doubles
    with syncopate.TableWorker.connect(catalogue=STORAGES, storage="doubles", optimizer="sgd") as worker:
        table = worker.create_table("weights", weights)
        worker.start()
        for _ in range(200):  # worker w pulls the weights to w, so that they end at the mean of the workers
            worker.sync(table)
            worker.update(table, weights - worker.worker, rate=0.1)
            worker.clock(rate=0.1)
        worker.finish()
        print(f"worker {worker.worker} of {worker.workers}: weights {weights[0]:.1f} of {weights.dtype}")
