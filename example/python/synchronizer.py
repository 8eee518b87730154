"""Trains a network in NumPy on every rank, and averages gradients during the backward pass."""

import numpy

import syncopate

SIZES, STEPS, BATCH, RATE = (64, 128, 10), 100, 32, 0.1


def initial_weights(seed):
    """Weights and biases by name, in the order of the forward pass; equal on every rank."""
    random = numpy.random.default_rng(seed)
    shapes = {f"weight{i}": pair for i, pair in enumerate(zip(SIZES, SIZES[1:], strict=False))}
    return {name: (random.standard_normal(shape) / shape[0] ** 0.5).astype(numpy.float32) for name, shape in shapes.items()}


def backward(weights, samples, labels, write):
    """One forward and backward pass; `write(i, gradient)` as soon as gradient i is known. Returns the loss."""
    first, second = weights.values()
    hidden = numpy.maximum(samples @ first, 0)
    scores = hidden @ second
    chances = numpy.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    loss = -numpy.log(chances[numpy.arange(len(labels)), labels]).mean()
    chances[numpy.arange(len(labels)), labels] -= 1
    error = chances / len(labels)
    write(1, hidden.T @ error)
    write(0, samples.T @ ((error @ second.T) * (hidden > 0)))
    return loss


def train(group):
    """Train on this rank's own samples, whose labels come from a fixed network."""
    weights, teacher = initial_weights(seed=0), initial_weights(seed=1)
    random = numpy.random.default_rng(group.rank)
    averages = syncopate.Synchronizer(group, [syncopate.Gradient(name, w.shape) for name, w in weights.items()])
    gradients = [numpy.from_dlpack(averages.gradient(i)) for i in range(len(weights))]

    def write(i, gradient):
        gradients[i][...] = gradient
        averages.ready(i)  # it is sent while the next one is computed

    for _ in range(STEPS):
        samples = random.standard_normal((BATCH, SIZES[0])).astype(numpy.float32)
        labels = (numpy.maximum(samples @ teacher["weight0"], 0) @ teacher["weight1"]).argmax(1)
        loss = backward(weights, samples, labels, write)
        averages.wait()
        for weight, gradient in zip(weights.values(), gradients, strict=True):
            weight -= RATE * gradient
    averages.close()
    return loss, sum(float(weight.sum(dtype=numpy.float64)) for weight in weights.values())


if __name__ == "__main__":
    with syncopate.Group.join() as group:
        loss, weights_sum = train(group)
        print(f"rank {group.rank} of {group.size}: loss {loss:.3f}, sum of weights {weights_sum:.6f}")
