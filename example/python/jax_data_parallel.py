"""Trains a network in JAX on every rank, and averages its coded gradients: syncopate run -n 2 -- python jax_data_parallel.py."""

import jax
import jax.numpy as jnp
import numpy
import outcome

import syncopate

SHAPES, STEPS, BATCH, RATE = {"hidden": (64, 256), "output": (256, 16)}, 20, 64, 0.2


def loss_of(weights, samples, teacher):
    scores, wanted = (jnp.maximum(samples @ net["hidden"], 0) @ net["output"] for net in (weights, teacher))
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), wanted.argmax(1)[:, None], 1).mean()


def train(group):
    """Train on this rank's own samples, whose labels come from a fixed network."""
    weights, teacher = ({name: jax.random.normal(jax.random.key(seed), shape) / 9 for name, shape in SHAPES.items()} for seed in (0, 1))
    parts = [syncopate.Gradient(*part) for part in SHAPES.items()]
    synchronizer = syncopate.Synchronizer(group, parts, codec="topk:0.05", feedback="residual")
    averages = [numpy.from_dlpack(synchronizer.gradient(i)) for i in range(len(SHAPES))]
    passes, sent, losses = jax.jit(jax.value_and_grad(loss_of)), group.traffic_bytes[0], []
    for step in range(STEPS):
        samples = jax.random.normal(jax.random.key(1000 * group.rank + step), (BATCH, 64))
        loss, gradients = passes(weights, samples, teacher)
        for i, name in reversed(list(enumerate(SHAPES))):
            averages[i][...] = gradients[name]  # waits until JAX has computed it
            synchronizer.ready(i)
        synchronizer.wait()
        weights = {name: weights[name] - RATE * jnp.array(averages[i]) for i, name in enumerate(SHAPES)}  # of a copy
        losses.append(float(loss))
    return outcome.line_of(group.rank, losses, [numpy.asarray(weights[name]).tobytes() for name in SHAPES], group.traffic_bytes[0] - sent)


if __name__ == "__main__":
    jax.config.update("jax_platforms", "cpu")
    with syncopate.Group.join() as group:
        print(train(group))
