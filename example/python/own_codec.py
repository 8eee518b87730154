"""Your own codec: top-k with a residual, whose averages have the bits of the library's codec topk."""

import numpy

import syncopate


def largest(tensors, step):
    """Every rank sends its k elements of the greatest magnitude; the residual keeps the others."""
    words = []
    for tensor in tensors:
        magnitude = numpy.abs(tensor.values)
        k = int(numpy.ceil(step.numbers[0] * magnitude.size))
        chosen = numpy.sort(numpy.argsort(-magnitude, kind="stable")[:k]).astype(numpy.uint32)
        chosen = chosen[magnitude[chosen] > 0]
        words += [numpy.uint32([chosen.size]), chosen, tensor.values[chosen].view(numpy.uint32)]
        tensor.sent(chosen)
    packets = yield syncopate.gather(numpy.concatenate(words))
    for tensor in tensors:
        tensor.average[:] = 0
        for rank, packet in enumerate(packets):
            chosen, values, packets[rank] = numpy.split(packet[1:], [packet[0], 2 * packet[0]])
            tensor.average[chosen] += values.view(numpy.float32) / numpy.float32(step.ranks)


codec = syncopate.Codec("largest", largest, parameters=[syncopate.Parameter("density", 0.01, most=1)], feedback="maskable")

if __name__ == "__main__":
    with syncopate.Group.join() as group:
        ends = set()
        for name in ("largest:0.05", "topk:0.05"):
            averages = syncopate.Synchronizer(group, [syncopate.Gradient("w", (100, 100))], catalogue=[codec], codec=name)
            gradient, random = numpy.from_dlpack(averages.gradient(0)), numpy.random.default_rng(group.rank)
            for _ in range(10):
                gradient[:] = random.standard_normal(gradient.shape)
                averages.ready(0)
                averages.wait()
            ends.add(gradient.tobytes())
        print(f"rank {group.rank} of {group.size}: the averages of step 10 are {'equal' if len(ends) == 1 else 'different'}")
