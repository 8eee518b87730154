"""Training loops as users write them: what they do with gradients between backward and step, and with wrapped models."""

import gc
import os
import pickle
import weakref

import torch
import torch.distributed as dist
from device import chosen
from device.chosen import DEVICE
from torch import nn

import syncopate
import syncopate.horovod as hvd
import syncopate.torch

STEPS = 4
CODECS = ("none", "topk:0.1")


def model(seed=0):
    """A small network, of single precision."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))


def sgd(net):
    return torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)


def loss_of(net, step):
    """The loss of samples of this rank's own."""
    torch.manual_seed(100 * step + dist.get_rank())
    return net(torch.randn(8, 16)).square().mean()


def differs(net, what):
    """[what] if the ranks have different weights."""
    mine = torch.cat([parameter.detach().reshape(-1) for parameter in net.parameters()])
    first = mine.clone()
    dist.broadcast(first, 0)
    unequal = torch.tensor(int(not torch.equal(mine, first)))
    dist.all_reduce(unequal)
    return [what] if unequal or not mine.isfinite().all() else []


def refusal(call):
    """The text of the Misuse that the call raises."""
    try:
        call()
    except syncopate.Misuse as error:
        return str(error)
    return "no error"


def _noise(parameters):
    generator = torch.Generator().manual_seed(5)
    for parameter in parameters:
        parameter.grad.add_(torch.randn(parameter.shape, generator=generator, device="cpu").to(DEVICE), alpha=0.01)


def _replaced(parameters):
    for parameter in parameters:
        parameter.grad = parameter.grad * 0.5


CHANGES = {
    "clip_grad_norm_": lambda parameters: nn.utils.clip_grad_norm_(parameters, 0.01),
    "clip_grad_value_": lambda parameters: nn.utils.clip_grad_value_(parameters, 1e-4),
    "_foreach_mul_": lambda parameters: torch._foreach_mul_([parameter.grad for parameter in parameters], 0.3),
    "noise": _noise,
    "another tensor": _replaced,
    "sign": lambda parameters: [parameter.grad.sign_() for parameter in parameters],
}


def _wrapped(kind, net, codec):
    if kind == "horovod":
        return hvd.DistributedOptimizer(sgd(net), net.named_parameters(), compression=codec)
    optimizer = syncopate.torch.RuleOptimizer(net.parameters(), "lamb", 0.01) if kind == "rule" else sgd(net)
    return syncopate.torch.DistributedOptimizer(optimizer, net, codec=codec, dense_below=0)


def _after_a_step(kind):
    """(net, optimizer) with the weights of one step."""
    net = model()
    optimizer = syncopate.torch.ShardedOptimizer(net, "sgd", 0.1) if kind == "sharded" else _wrapped(kind, net, "none")
    loss_of(net, 0).backward()
    optimizer.step()
    if kind == "sharded":
        optimizer.synchronize()
    return net, optimizer


def changed_gradients(rank):
    """Weights stay equal on all ranks, and the change counts, whatever a program does between `backward` and `step`."""
    wrong = []
    every_change = [("optimizer", codec, name) for codec in CODECS for name in CHANGES]
    for kind, codec, name in (*every_change, *((kind, "topk:0.1", "clip_grad_norm_") for kind in ("rule", "horovod"))):
        net = model()
        optimizer = _wrapped(kind, net, codec)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(net, step).backward()
            CHANGES[name](list(net.parameters()))
            changed = [parameter.grad.clone() for parameter in net.parameters()]
            optimizer.step()
            kept = kind == "rule" or all(torch.equal(a, p.grad) for a, p in zip(changed, net.parameters(), strict=True))  # rule: zeros
            wrong += [] if kept else [f"{kind}, {codec}, {name}: step changed the gradients"]
        wrong += differs(net, f"{kind}, {codec}, {name}")
        optimizer.close()
    return wrong


def averages_after_backward(rank):
    """As soon as a backward pass has ended gradients are the averages, with checkpoints, accumulation and missing parameters too."""
    from torch.utils.checkpoint import checkpoint
    wrong = []
    for name in ("plain", "reentrant", "micro-batches", "only in a micro-batch", "missing", "two passes", "twice"):
        net, twin = model(), model()
        optimizer = syncopate.torch.DistributedOptimizer(sgd(net), net, zero_missing=name == "missing")
        x, own = torch.full((4, 16), rank + 1.0), []
        for of in (net, twin):
            if name == "reentrant":
                hidden = of[0](x.clone().requires_grad_())
                hidden = checkpoint(of[1:4], hidden, use_reentrant=of is net)
                of[4](hidden).sum().backward()
            elif name == "micro-batches":
                with optimizer.no_sync():
                    with optimizer.no_sync():
                        of(x).sum().backward()
                    of(2 * x).sum().backward()
                    own.append([parameter.grad.clone() for parameter in of.parameters()])
                of(3 * x).sum().backward()
            elif name == "only in a micro-batch":
                with optimizer.no_sync():
                    of(x).sum().backward()
                of[0](x).sum().backward()
            elif name == "twice":
                of(x).sum().backward()
                of(2 * x).sum().backward()
            elif name == "missing":
                of[2](of[0](x)).sum().backward()
            elif name == "two passes":
                of[0](x).sum().backward()
                of[2:](torch.ones(4, 32) * rank).sum().backward()
            else:
                of(x).sum().backward()
        if own and not all(map(torch.allclose, *own)):
            wrong.append(f"{name}: averages within no_sync")
        for (which, parameter), local in zip(net.named_parameters(), twin.parameters(), strict=True):
            wanted = torch.zeros_like(local) if local.grad is None else local.grad.clone()
            dist.all_reduce(wanted, op=dist.ReduceOp.SUM)
            if not torch.allclose(parameter.grad, wanted / dist.get_world_size(), rtol=1e-5, atol=1e-7):
                wrong.append(f"{name}: {which}")
        optimizer.step()
        optimizer.synchronize()  # without effect: there are no gradients
        optimizer.close()
    return wrong


def adversaries(rank):
    """The generator's backward pass reaches the discriminator, as in a GAN; with a codec too."""
    wrong = []
    for codec in CODECS:
        for kind in ("optimizer", "horovod"):
            generator, critic = model(1), model(2)
            critic[0] = nn.Linear(4, 32)
            of_generator, of_critic = (_wrapped(kind, net, codec) for net in (generator, critic))
            for step in range(STEPS):
                torch.manual_seed(100 * step + rank)
                of_critic.zero_grad()
                (critic(torch.randn(8, 4)).mean() - critic(generator(torch.randn(8, 16)).detach()).mean()).backward()
                of_critic.step()
                of_generator.zero_grad()
                critic(generator(torch.randn(8, 16))).mean().backward()
                of_generator.step()
            wrong += differs(generator, f"generator, {kind}, {codec}") + differs(critic, f"critic, {kind}, {codec}")
            of_generator.close()
            of_critic.close()
    return wrong


def closures(rank):
    """An optimizer that calls the closure several times decides alike on all ranks."""
    net = model()
    optimizer = syncopate.torch.DistributedOptimizer(torch.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn="strong_wolfe"), net)
    before = loss_of(net, 0).item()

    def closure():
        optimizer.zero_grad()
        loss = loss_of(net, 0)
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    wrong = differs(net, "weights") + ([] if loss_of(net, 0).item() < before else ["the loss does not fall"])
    optimizer.close()
    return wrong


def overflows(rank):
    """After a step with an infinity on one rank, which GradScaler skips, steps go on, and weights are equal."""
    wrong = []
    looks_at_weights = ("importance",) if DEVICE == "cpu" else ()  # an accelerator's weights are not copied
    for codec in ("topk:0.1", "dgc:0.1", "low_rank:2", "int8", "onebit", *looks_at_weights):
        for kind in ("optimizer", "hook"):
            net = model()
            if kind == "hook":
                trained = syncopate.torch.DistributedDataParallel(net, codec=codec, dense_below=0, bucket_cap_mb=0.002)
                optimizer = sgd(net)
            else:
                trained, optimizer = net, syncopate.torch.DistributedOptimizer(sgd(net), net, codec=codec, dense_below=0)
            scaler, skipped = torch.amp.GradScaler(DEVICE, init_scale=1024.0), 0
            for step in range(8):
                optimizer.zero_grad()
                scaler.scale(loss_of(trained, step) * (float("inf") if step in (2, 3) and rank == 1 else 1)).backward()
                before = net[0].weight.detach().clone()
                scaler.step(optimizer)
                scaler.update()
                skipped += torch.equal(before, net[0].weight)
            wrong += [] if skipped == 2 else [f"{kind}, {codec}: {skipped} steps of 8 were skipped"]
            wrong += differs(net, f"{kind}, {codec}")
            (trained if kind == "hook" else optimizer).close()
    return wrong


def never_applied(rank):
    """Averages that the program drops leave no trace in the codec's state."""
    states = []
    for steps in ((0, 1), (0, 7, 1)):
        net = model()
        optimizer = syncopate.torch.DistributedOptimizer(sgd(net), net, codec="topk:0.1", dense_below=0)
        for step in steps:
            loss_of(net, step).backward()
            if step != 7:
                optimizer.step()
            net.zero_grad()
        states.append(optimizer.synchronizer.save())
        optimizer.close()
    return [] if states[0] == states[1] else ["state"]


def discarded(rank):
    """A step that the program discards leaves no trace in the hook's state; a state is loaded only by the rank that saved it."""
    states = []
    for steps in ((0, 1), (0, 7, 1)):
        net = syncopate.torch.DistributedDataParallel(model(), codec="topk:0.1", dense_below=0, bucket_cap_mb=0.002)
        for step in steps:
            loss_of(net, step).backward()
            net.zero_grad()
            if step == 7:
                net.hook_state.discard_step()
        states.append(net.codec_state())
        fresh = syncopate.torch.DistributedDataParallel(model(), codec="topk:0.1", dense_below=0, bucket_cap_mb=0.002)
        everyones = [None] * dist.get_world_size()
        dist.all_gather_object(everyones, states[-1])
        fresh.load_codec_state(everyones[rank])
        foreign = refusal(lambda: fresh.load_codec_state(everyones[1 - rank]))
        net.close()
        fresh.close()
    return ([] if states[0] == states[1] else ["state"]) + ([] if f"that of rank {1 - rank} of 2" in foreign else [foreign])


def unfrozen(rank):
    """A layer that is unfrozen later is refused by name of the cause, as is a second gradient in a step."""
    net = model()
    net[0].requires_grad_(False)
    optimizer = syncopate.torch.DistributedOptimizer(sgd(net), net)
    loss_of(net, 0).backward()
    optimizer.step()
    net[0].requires_grad_(True)
    loss_of(net, 1).backward()
    wrong = [] if "unfrozen" in (text := refusal(optimizer.step)) else [text]
    net.zero_grad()
    net[4](torch.ones(2, 32)).sum().backward()
    wrong += [] if "second gradient" in (text := refusal(lambda: net[4](torch.ones(2, 32)).sum().backward())) else [text]
    wrong += [] if "no_sync()" in (text := refusal(optimizer.zero_grad)) else [text]
    optimizer.close()
    return wrong


def uneven_batches(rank):
    """Under `join` of the class ranks may have different numbers of batches, with a codec too."""
    wrong = []
    for codec in CODECS:
        net = syncopate.torch.DistributedDataParallel(model(), codec=codec, dense_below=0, bucket_cap_mb=0.002)
        optimizer = sgd(net)
        with net.join():
            for step in range(2 + 2 * rank):
                optimizer.zero_grad()
                loss_of(net, step).backward()
                optimizer.step()
        wrong += differs(net.module, codec)
        net.close()
    return wrong


def empty_parameters(rank):
    """Parameters without elements and frozen ones are trained as the others are."""
    wrong = []
    for kind in ("optimizer", "rule", "horovod", "hook", "sharded"):
        net = nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 0), nn.Linear(0, 4))
        for parameter in net.parameters():
            dist.broadcast(parameter.detach(), 0)
        trained = net
        if kind == "hook":
            trained = syncopate.torch.DistributedDataParallel(net, codec="topk:0.5", dense_below=0, bucket_cap_mb=1e-5)
            optimizer = sgd(net)
        elif kind == "sharded":
            optimizer = syncopate.torch.ShardedOptimizer(net, "sgd", 0.1, zero_missing=True)
        else:
            optimizer = _wrapped(kind, net, "none")
        for step in range(2):
            optimizer.zero_grad()
            loss_of(trained, step).backward()
            optimizer.step()
        if kind == "sharded":
            optimizer.synchronize()
        wrong += differs(net, kind)
        (trained if kind == "hook" else optimizer).close()
    return wrong


def saved_modules(rank):
    """A module that a wrapper trains can be pickled, and its copy is a module of its own."""
    net = model()
    optimizer = syncopate.torch.ShardedOptimizer(net, "sgd", 0.1)
    for step in range(2):
        loss_of(net, step).backward()
        optimizer.step()
        optimizer.synchronize()
    copied = pickle.loads(pickle.dumps(net))
    same = all(torch.equal(a, b) for a, b in zip(net.parameters(), copied.parameters(), strict=True))
    loss_of(copied, 3).backward()
    optimizer.close()
    return [] if same else ["weights of the copy"]


def forks(rank):
    """A forked process trains the inherited model alone, and ends without a message."""
    wrong = []
    for kind in ("optimizer", "sharded", "horovod"):
        net, optimizer = _after_a_step(kind)
        child = os.fork()
        if child == 0:
            try:
                own = sgd(net)
                net(torch.ones(2, 16)).sum().backward()
                own.step()
                own.zero_grad()
                optimizer.zero_grad()
                net(torch.ones(2, 16)).sum().backward()
                os._exit(0 if all(parameter.grad is not None for parameter in net.parameters()) else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        wrong += [] if status == 0 else [f"{kind}: {status}"]
        loss_of(net, 1).backward()
        optimizer.step()
        optimizer.close()
        wrong += differs(net, kind)
    return wrong


def dropped(rank):
    """Optimizers that are dropped without `close` leave their groups, and nothing keeps them."""
    wrong = []
    for kind in ("optimizer", "horovod", "sharded"):
        descriptors = []
        for _ in range(3):
            net, optimizer = _after_a_step(kind)
            gone = weakref.ref(optimizer)
            dist.barrier()  # every rank has the weights
            del net, optimizer
            gc.collect()
            wrong += [] if gone() is None else [kind]
            descriptors.append(len(os.listdir("/proc/self/fd")))
        wrong += [] if descriptors[2] <= descriptors[1] else [f"{kind}: {descriptors} descriptors"]
    return wrong


PARTS = (
    changed_gradients,
    averages_after_backward,
    adversaries,
    closures,
    overflows,
    never_applied,
    discarded,
    unfrozen,
    uneven_batches,
    empty_parameters,
    saved_modules,
    dropped,
)


def everything(rank, size, store, parts=PARTS):
    """Returns what is wrong, by name."""
    chosen.begin(rank, size, store)
    chosen.make_default()
    os.environ |= {"SYNCOPATE_RANK": str(rank), "SYNCOPATE_SIZE": str(size), "SYNCOPATE_RENDEZVOUS": store + "-horovod"}
    hvd.init()
    wrong = {part.__name__: part(rank) for part in parts}
    hvd.shutdown()
    dist.destroy_process_group()
    return wrong


def forking(rank, size, store):
    """Returns what is wrong with forks."""
    return everything(rank, size, store, [forks])
