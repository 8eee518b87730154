"""Your own consistency models at the other places where a model can decide: parts, weights without a request, clocks."""

import numpy

import syncopate
import syncopate.testing


class Large:
    """The larger half of an update travels early, the rest when another worker requires it."""

    def __init__(self, staleness):
        self.staleness = int(staleness)

    def travels_early(self, clocks):
        return True

    def part(self, clocks, weights, update, sent):
        numpy.copyto(sent, update, where=numpy.abs(update) >= numpy.median(numpy.abs(update)))


class Pushed:
    """Servers send weights without a request when a worker is behind."""

    def __init__(self, staleness):
        self.staleness = int(staleness)

    def sends_unasked(self, server):
        return server.clocks[server.worker] < max(server.clocks)


class Together:
    """A worker sends its updates early while another one is behind."""

    sees_clocks = True

    def __init__(self, staleness):
        self.staleness = int(staleness)

    def travels_early(self, clocks):
        return bool(clocks.clocks) and min(clocks.clocks) + 1 < clocks.own


STALENESS = [syncopate.Parameter("staleness", 3, most=1e6, whole=True, or_zero=True)]
MODELS = [syncopate.Consistency(kind.__name__.lower(), kind, parameters=STALENESS) for kind in (Large, Pushed, Together)]

if __name__ == "__main__":
    syncopate.serve(MODELS)  # does not return in a server of `syncopate run --servers 2 --own-servers`
    weights = numpy.zeros(3000, numpy.float32)
    assert not any(syncopate.testing.check_consistency(model, bound=3, histories=5) for model in MODELS)
    with syncopate.TableWorker.connect(catalogue=MODELS, consistency="large:2", optimizer="sgd") as worker:
        table = worker.create_table("weights", weights)
        worker.start()
        for _ in range(400):  # worker w pulls the weights to w, so that they end at the mean of the workers
            worker.sync(table)
            worker.update(table, weights - worker.worker, rate=0.02)
            worker.clock(rate=0.02)
        worker.finish()
        print(f"worker {worker.worker} of {worker.workers}: weights {weights[0]:.1f}")
