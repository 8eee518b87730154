"""Your own consistency model: a barrier of K of N workers, `quorum:K,S`, at most S steps beyond the slowest worker."""

import numpy

import syncopate
import syncopate.testing


class Quorum:
    """Step c begins when K workers have ended step c - 1; the others' updates count when they arrive."""

    staleness = 0  # the slowest worker never waits

    def __init__(self, workers, steps):
        self.workers, self.steps = int(workers), int(steps)

    def last_step(self, server):
        """The last step that a worker may compute: servers call it with the clocks of all workers."""
        clocks = sorted(server.clocks, reverse=True)
        return min(clocks[min(self.workers, len(clocks)) - 1], server.least + self.steps)


consistency = syncopate.Consistency("quorum", Quorum, parameters=[
    syncopate.Parameter("workers", 2, most=4096, whole=True), syncopate.Parameter("steps", 5, most=1e6, whole=True)])

if __name__ == "__main__":
    syncopate.serve([consistency])  # does not return in a server of `syncopate run --servers 2 --own-servers`
    if broken := syncopate.testing.check_consistency(consistency, parameter="1,4", bound=4, histories=20):
        raise SystemExit(broken.text)
    weights = numpy.zeros(3000, numpy.float32)
    with syncopate.TableWorker.connect(catalogue=[consistency], consistency="quorum:1,4", optimizer="sgd") as worker:
        table = worker.create_table("weights", weights)
        worker.start()
        for _ in range(400):  # worker w pulls the weights to w, so that they end at the mean of the workers
            worker.sync(table)
            worker.update(table, weights - worker.worker, rate=0.02)
            worker.clock(rate=0.02)
        worker.finish()
        stalest = worker.statistics().stalest
        print(f"worker {worker.worker} of {worker.workers}: weights {weights[0]:.1f}, at most {stalest} steps stale")
