"""A program as users write it, for mypy (`check/README.md`): types of the public names must allow it, and refuse its mistakes.

It is not run. Each `type: ignore` is a mistake: mypy reports one that it does not find, as an unused comment.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy
import torch

import syncopate
import syncopate.horovod as hvd
import syncopate.testing
import syncopate.torch
import syncopate.torch.fsdp


def collectives() -> None:
    with syncopate.Group.join(timeout_s=10) as group:
        gradient = numpy.full(1 << 20, group.rank, numpy.float32)
        group.allreduce(gradient, op="average", name="gradient")
        own: slice = group.reduce_scatter(gradient)
        gradient[own] = 0
        work: syncopate.Work = group.start("allreduce", gradient)
        work.then(lambda error: print("failed" if error else "ended"))
        asyncio.run(waiting(work))
        half = group.split(group.rank % 2, 0)
        if half is not None:
            half.barrier()
        half.barrier()  # type: ignore[union-attr]  # a rank with a negative colour has none
        group.allreduce(gradient, operation="sum")  # type: ignore[call-arg]  # the keyword is `op`


async def waiting(work: syncopate.Work) -> None:
    await work


def gradients(group: syncopate.Group, feedback: syncopate.Feedback | str) -> list[int]:
    shapes = [syncopate.Gradient("weight", (4, 4)), syncopate.Gradient("bias", 4)]
    with_feedback = syncopate.Synchronizer(group, shapes, codec="topk:0.01", feedback=feedback, policy="mg_wfbp")
    values = numpy.from_dlpack(with_feedback.gradient(0))
    values[:] = 1
    with_feedback.ready(0)
    with_feedback.wait()
    syncopate.Synchronizer(group, shapes, feedback=0.5)  # type: ignore[arg-type]  # neither a Feedback nor its kind
    weights = {"weight": numpy.zeros(16, numpy.float32)}
    optimizer = syncopate.Optimizer(weights, "adam", hyperparameters={"weight_decay": 0.01})
    optimizer.update(0, [numpy.zeros(16, numpy.float32)], rate=0.1, step=1)
    return [bucket.bytes for bucket in with_feedback.buckets()]


def own_components() -> syncopate.Policy:
    def partition(layers: list[syncopate.PolicyLayer], step: syncopate.PolicyStep) -> list[tuple[int, int]]:
        return [(0, len(layers) - 1)] if step.ranks > 1 else []

    policy = syncopate.Policy("one_bucket", partition)
    broken: syncopate.testing.BrokenLaw | None = syncopate.testing.check_policy(policy)
    print(broken.text if broken else "it obeys")
    syncopate.serve([policy])
    return policy


def plans(cluster: Path) -> float:
    measured: syncopate.Profile = syncopate.profile("resnet50", throughput_gflops=5000)
    measured.write("profile.json")
    predictions = syncopate.plan(measured, cluster, policies=["exact_dp"], ranks=8)
    syncopate.plan("profile.json", {"ranks": 4, "links": []})
    syncopate.plan(measured, 4)  # type: ignore[arg-type]  # a cluster is a path or a dict
    best: syncopate.Prediction = min(predictions, key=lambda one: one.iteration_s)
    best.iteration_s = 0  # type: ignore[misc]  # results are frozen
    rounds: int = syncopate.plan_collective("ring", ranks=8, bytes=1 << 20).rounds
    simulated = syncopate.simulate(measured, cluster, ranks=[8, 16], noise=0.1)
    return best.over_optimum + rounds + simulated[0].efficiency + sum(entry.shelf == "codec" for entry in syncopate.info())


def errors(group: syncopate.Group) -> int:
    try:
        group.barrier()
    except (syncopate.PeerLost, syncopate.Timeout) as error:
        return -1 if error.peer is None else error.peer
    return 0


def averaged(model: torch.nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    optimizer = syncopate.torch.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model, codec="fp16", clip_norm=1.0)
    with syncopate.torch.Recorder(Path("run"), model, optimizer) as record:
        for inputs, labels in batches:
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own lacks types
            optimizer.step()
            record.step(loss=loss.item(), samples=len(inputs))
        record.evaluation(epoch=1, accuracy=0.9)
        record.step(loss="0.5", samples=1)  # type: ignore[arg-type]  # a loss is a number
    state: dict[str, object] = optimizer.state_dict()
    print(len(state))
    optimizer.close()
    syncopate.torch.DistributedOptimizer(model, optimizer)  # type: ignore[arg-type]  # in the other order


def with_codecs(model: torch.nn.Module, mesh: torch.distributed.device_mesh.DeviceMesh) -> str:
    parallel = syncopate.torch.DistributedDataParallel(model, codec="auto:topk:0.01+none", feedback=syncopate.Feedback("residual"), at_least=0.1)
    parallel.load_codec_state(parallel.codec_state())
    print(parallel.choice.codec)  # type: ignore[union-attr]  # None before it is made
    exchange = syncopate.torch.fsdp.compress(model, mesh, codec="topk:0.01")
    exchange.load_state_dict(exchange.state_dict())
    syncopate.torch.fsdp.compress(mesh, model)  # type: ignore[arg-type]  # in the other order
    return parallel.choice.codec if parallel.choice else "none yet"


def divided(model: torch.nn.Module, group: syncopate.Group) -> float:
    optimizer = syncopate.torch.ShardedOptimizer(model, "adamw", 1e-3, group=group, policy=own_components(), weight_decay=0.1)
    with optimizer.no_sync():
        model(torch.zeros(1)).sum().backward()
    optimizer.step()
    optimizer.synchronize()
    rule = syncopate.torch.RuleOptimizer(model.parameters(), "lamb", lr=0.1, trust=0.01)
    rule.step()
    syncopate.torch.RuleOptimizer(model.parameters(), "lamb", lr="0.1")  # type: ignore[arg-type]  # a rate is a number
    return optimizer.waited_s


def served(model: torch.nn.Module) -> torch.Tensor:
    optimizer = syncopate.torch.ServedOptimizer(torch.optim.AdamW(model.parameters()), model, consistency="ssp:3")
    optimizer.step()
    optimizer.finish()
    with syncopate.TableWorker.connect(consistency="bsp") as worker:
        embedding = syncopate.torch.Embedding(worker, "words", 16, lr=0.1, rule="adagrad")
        syncopate.torch.Embedding("words", worker, 16, lr=0.1)  # type: ignore[arg-type]  # in another order
        return embedding.forward(torch.tensor([1, 2]))


def planned(model: torch.nn.Module) -> list[str]:
    def loss(output: torch.Tensor) -> torch.Tensor:
        return output.sum()

    profile = syncopate.torch.profile(model, torch.zeros(1), loss=loss, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    syncopate.torch.plan(model, (torch.zeros(1),), "cluster.json", codecs=["none", "fp16"], policies=["single"])
    syncopate.torch.profile(model, torch.zeros(1), loss=0.5)  # type: ignore[arg-type]  # a function of the output
    return [layer.name for layer in profile.layers]


def pictures() -> torch.Tensor:
    decoder = syncopate.torch.PictureDecoder(224, augment=True, mean=[0.5, 0.5, 0.5])
    source = syncopate.torch.ThrottledSource("pictures.tar", 1e6, extensions=decoder.extensions)
    decoder("picture.png")  # type: ignore[arg-type]  # the bytes of a file
    return decoder(source.read(0), seed=1)


def horovod(model: torch.nn.Module) -> torch.Tensor:
    hvd.init()
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size()), model.named_parameters(),
                                         compression=hvd.Compression.fp16, op=hvd.Average)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    rows, counts = hvd.alltoall(torch.zeros(4), splits=[2, 2])
    handle = hvd.allreduce_async(rows, name="rows", op=hvd.Sum)
    print(hvd.poll(handle), hvd.synchronize(handle), counts.tolist())
    even = hvd.add_process_set([0, 2])
    hvd.allreduce([1.0])  # type: ignore[arg-type]  # a tensor
    hvd.allreduce(rows, op=hvd.Adasum)  # type: ignore[arg-type]  # it is not supported
    return hvd.alltoall(rows) + hvd.allreduce(rows, process_set=even)
