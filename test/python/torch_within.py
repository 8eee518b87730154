"""DDP with a process group within hosts and the library's codecs between them; hosts are blocks of ranks of the job."""

import contextlib
import os
import pickle
import signal
import types
from unittest import mock

import numpy
import torch
import torch.distributed as dist
from device import chosen
from device.chosen import DEVICE, late
from torch import nn

import syncopate
import syncopate.torch
from syncopate.torch.ddp import host_groups, within_host

HOSTS = int(os.environ.get("HOSTS", "2"))
STEPS, WIDTH, ROWS = 5, 24, 37  # 37 rows are not divisible by the ranks of a host


def begin(rank, size, store):
    """(within, across): process groups of this rank's host, and of the ranks with its place."""
    backend = os.environ.get("BACKEND", "gloo")
    if backend == "syncopate":
        syncopate.torch.register()
    chosen.begin(rank, size, store, backend)
    ranks = torch.arange(size).view(HOSTS, -1)
    groups = [[dist.new_group(one) for one in table.tolist()] for table in (ranks, ranks.T)]
    return groups[0][rank // (size // HOSTS)], groups[1][rank % (size // HOSTS)]


class Model(nn.Module):
    """Several buckets; shards that are padded or empty, a scalar, and weights whose memory is not in C order."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.picture = nn.Conv2d(3, 5, 2).to(memory_format=torch.channels_last)
        self.turned = nn.Parameter(torch.randn(WIDTH, 5 * 4).t().mul(0.1))
        self.layers = nn.Sequential(nn.Linear(WIDTH, ROWS), nn.Tanh(), nn.Linear(ROWS, WIDTH, bias=False), nn.Tanh(), nn.Linear(WIDTH, 1))
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.scale * self.layers(self.picture(x).flatten(1) @ self.turned)


def batch(rank, step):
    """This rank's input of a step."""
    return torch.randn(16, 3, 3, 3, generator=torch.Generator().manual_seed(1000 * step + rank)).to(DEVICE)


def train(net, steps=range(STEPS)):
    """The weights after these steps, on the CPU."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in steps:
        optimizer.zero_grad()
        x = batch(dist.get_rank(), step)
        (net(x) - x.flatten(1).sum(1, keepdim=True).sin()).square().mean().backward()
        optimizer.step()
    return torch.cat([value.detach().cpu().flatten() for value in net.parameters()])


def wrapped(within, **options):
    return syncopate.torch.DistributedDataParallel(Model().to(DEVICE), bucket_cap_mb=0.0015, within=within, dense_below=0, **options)


def native(within, across):
    """torch's DDP with a hook of two collectives of torch: the sum of a host divided by its ranks, then the sum of hosts divided by them."""
    net = nn.parallel.DistributedDataParallel(Model().to(DEVICE), bucket_cap_mb=0.0015)

    def hook(_, bucket):
        average = bucket.buffer()
        for group in (within, across):
            average /= group.size()
            dist.all_reduce(average, group=group)
        done = torch.futures.Future(devices=[] if average.is_cpu else [average.device])
        done.set_result(average)
        return done

    net.register_comm_hook(None, hook)
    return net


def against_native(rank, size, store):
    """Whether the weights without a codec are those of `native`, and whether they are those of plain DDP."""
    within, across = begin(rank, size, store)
    wanted, plain = train(native(within, across)), train(nn.parallel.DistributedDataParallel(Model().to(DEVICE), bucket_cap_mb=0.0015))
    net = wrapped(within)
    with late(operator_us=30, copy_us=1000):
        found = train(net)
    net.close()
    return torch.equal(found, wanted), torch.equal(found, plain), torch.allclose(found, plain, rtol=1e-4, atol=1e-6)


def coded(rank, size, store):
    """By codec: the weights' bytes, and whether bytes were sent."""
    within, _ = begin(rank, size, store)
    found = {}
    for codec in os.environ["CODECS"].split():
        net = wrapped(within, codec=codec)
        with late(operator_us=30, copy_us=1000):
            trained = train(net)
        found[codec] = trained.numpy().tobytes(), net.hook_state.group.traffic_bytes[0] > 0
        net.close()
    return found


def one_matrix(within, **options):
    """A layer whose gradients are those that a test gives."""
    net = syncopate.torch.DistributedDataParallel(nn.Linear(WIDTH, ROWS, bias=False).to(DEVICE), within=within, dense_below=0, **options)

    def average(given):
        net.zero_grad()
        replaced = net.module.weight.register_hook(lambda _: given.to(DEVICE))
        net(torch.ones(1, WIDTH).to(DEVICE)).sum().backward()
        replaced.remove()
        return net.module.weight.grad.detach().cpu()
    return net, average


def topk_by_its_formula(rank, size, store):
    """Steps whose averages are not those of topk on the shards of the hosts' averages: what a shard does not send is added to the next one."""
    within, _ = begin(rank, size, store)
    density, ranks = 0.125, size // HOSTS
    net, averaged = one_matrix(within, codec=f"topk:{density}")
    kept, wrong = [torch.zeros(ROWS, WIDTH) for _ in range(HOSTS)], []
    for step in range(STEPS):
        drawn = [torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(100 * step + r)) for r in range(size)]
        average = torch.zeros(ROWS, WIDTH)
        for host in range(HOSTS):
            kept[host] += sum(drawn[host * ranks:(host + 1) * ranks]) / ranks
            for shard, to in zip(kept[host].chunk(ranks), average.chunk(ranks), strict=True):
                sent = shard.abs().flatten().topk(round(density * shard.numel())).indices
                to.view(-1)[sent] += shard.flatten()[sent] / HOSTS
                shard.view(-1)[sent] = 0
        found = averaged(drawn[rank])
        wrong += [] if torch.allclose(found, average, rtol=1e-5, atol=1e-6) else [step]
    net.close()
    return wrong


def not_finite(rank, size, store):
    """Whether a step with an infinity in one rank's rows leaves no trace in any rank's codec, and has it in every rank's average."""
    within, _ = begin(rank, size, store)
    drawn = [torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(100 * step + rank)) for step in range(3)]
    skipped = drawn[1].clone()
    skipped[0, 0] = torch.inf if rank == 0 else 0
    found = []
    for steps in ((drawn[0], skipped, drawn[2]), (drawn[0], drawn[2])):
        net, averaged = one_matrix(within, codec="topk:0.125")
        found.append([averaged(given) for given in steps])
        net.close()
    return bool(found[0][1].isinf().any()), torch.equal(found[0][2], found[1][1])


def bytes_between_hosts(rank, size, store):
    """Those that a host sends in a step with `topk:0.01`: by shards, and in the flat exchange of all ranks' whole gradients."""
    within, _ = begin(rank, size, store)
    sent = []
    for group in (within, None):
        net = syncopate.torch.DistributedDataParallel(nn.Linear(256, 256, bias=False).to(DEVICE), codec="topk:0.01", within=group)
        net(torch.ones(1, 256).to(DEVICE)).sum().backward()
        before = net.hook_state.group.traffic_bytes[0]
        net(torch.randn(4, 256).to(DEVICE)).square().sum().backward()
        sent.append(net.hook_state.group.traffic_bytes[0] - before)
        net.close()
    of_host = torch.tensor(float(sent[0]), device=DEVICE)
    dist.all_reduce(of_host, group=within)
    return float(of_host), sent[1]  # in a ring one rank of a host sends to the next host


def checkpoint(rank, size, store):
    """Whether a run that goes on from a checkpoint has the weights of one that was not interrupted, with and without the codec's state."""
    within, _ = begin(rank, size, store)
    whole = wrapped(within, codec="topk:0.1")
    train(whole, range(3))
    state, kept = {name: value.clone() for name, value in whole.state_dict().items()}, whole.codec_state()
    expected = train(whole, range(3, STEPS))
    facts = []
    for loaded in (kept, None):
        net = wrapped(within, codec="topk:0.1")
        net.load_state_dict(state)
        if loaded:
            net.load_codec_state(loaded)
        facts.append(torch.equal(train(net, range(3, STEPS)), expected))
    states = [None] * size
    dist.all_gather_object(states, kept)
    try:
        net.load_codec_state(states[(rank + 1) % size])
    except syncopate.Misuse as error:
        facts.append(str(error))
    net.hook_state.discard_step()
    return facts


def uses(rank, size, store):
    """Findings about passes that DDP knows: accumulation, parameters without a gradient, bf16, sizes of buckets, weights, one host, one rank."""
    within, across = begin(rank, size, store)
    found = {}
    for name, make in {"native": lambda: native(within, across), "within": lambda: wrapped(within)}.items():
        net = make()
        for part in range(2):
            with net.no_sync() if part == 0 else contextlib.nullcontext():
                net(batch(rank, part)).square().mean().backward()
        found[name] = [value.grad.cpu() for value in net.parameters()]
    wrong = [] if all(map(torch.equal, *found.values())) else ["accumulation"]
    for codec in ("importance:0.1", "fp16", "bf16"):
        found = [train(wrapped(within, codec=codec), range(2)) for _ in range(2 if DEVICE == "cpu" or codec != "importance:0.1" else 0)]
        wrong += [] if not found or torch.equal(*found) else [codec]
    half = syncopate.torch.DistributedDataParallel(nn.Linear(WIDTH, ROWS).to(DEVICE).bfloat16(), within=within, codec="topk:0.5", dense_below=0)
    half(torch.ones(2, WIDTH).bfloat16().to(DEVICE)).sum().backward()
    wrong += [] if half.module.bias.grad.dtype == torch.bfloat16 and bool((half.module.bias.grad == 2).any()) else ["bf16"]
    sized = syncopate.torch.DistributedDataParallel(Model().to(DEVICE), within=within, codec="topk:0.1")
    sizes = [None] * size
    dist.all_gather_object(sizes, sized.bucket_bytes_cap)
    wrong += [] if len(set(sizes)) == 1 else [f"sizes {sizes}"]
    alone = dist.new_group([rank], use_local_synchronization=True)
    for name, group, codec in (("one host", dist.group.WORLD, "topk:0.01"), ("one rank in a host", alone, "none")):
        net, averaged = one_matrix(group, codec=codec)
        wrong += [] if torch.allclose(averaged(torch.full((ROWS, WIDTH), float(rank))), torch.tensor((size - 1) / 2)) else [name]
        net.load_codec_state(net.codec_state())
        net.close()
    return wrong


@contextlib.contextmanager
def named_hosts(rank, table):
    """Rank i is on the host with the name table[i]."""
    with mock.patch.object(host_groups, "identity", lambda: (table[rank], table[rank])):
        yield


def by_names(rank, size, store):
    """Ranks that reduce within a host when its name decides; a group that spans hosts, and hosts of unequal size, are refused."""
    within, _ = begin(rank, size, store)
    with named_hosts(rank, "abab"):
        net, averaged = one_matrix("host")
        facts = [dist.get_process_group_ranks(net.hook_state._hosts.within), float(averaged(torch.full((ROWS, WIDTH), float(rank))).mean())]
        net.close()
        facts.append(message(lambda: one_matrix(within)))
    with named_hosts(rank, "aaab"):
        facts.append(message(lambda: one_matrix("host")))
    return facts


def pickled(rank, size, store):
    """Whether a pickle of within="host" goes on as the original, and the error of one with a process group."""
    within, _ = begin(rank, size, store)
    with named_hosts(rank, "aabb"):
        net = one_matrix("host", codec="topk:0.1")[0]
        x = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(rank)).to(DEVICE)
        net(x).square().sum().backward()
        gradients = []
        for one in (pickle.loads(pickle.dumps(net)), net):
            one.zero_grad()
            one(x).square().sum().backward()  # sends what the first pass has left
            gradients.append(one.module.weight.grad.cpu())
    return torch.equal(*gradients), message(lambda: pickle.dumps(one_matrix(within)[0]))


def message(call):
    """The error of a call."""
    try:
        call()
    except (syncopate.Error, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def refusals(rank, size, store):
    """The error of each mistake."""
    within, _ = begin(rank, size, store)
    first_two = dist.new_group([0, 1])  # on all ranks the same call
    three, one = dist.new_group([0, 1, 2]), dist.new_group([3])
    groups = {"no member": first_two, "no group": 4, "differs": within if rank != 1 else dist.group.WORLD, "unequal": three if rank < 3 else one,
              "some without": within if rank else None}
    found = {name: message(lambda group=group: one_matrix(group)) for name, group in groups.items()}
    found["auto"] = message(lambda: one_matrix(within, codec="auto:none+fp16"))
    found["unknown"] = message(lambda: one_matrix(within, codec="nothing")[1](torch.ones(ROWS, WIDTH)))
    return found


class Unfit(Exception):
    """That of a program's own codec."""


def raises(rank, size, store):
    """Rank 1's codec raises an error: those of the first two passes of each rank, which ends when all have the first one."""
    within, _ = begin(rank, size, store)
    fails = []

    def rounds(tensors, _):
        if fails:
            raise Unfit("unfit")
        yield syncopate.gather(numpy.zeros(tensors[0].values.size, numpy.uint32))

    net = wrapped(within, codec=syncopate.Codec("own", rounds))
    fails += [True] if rank == 1 else []
    first = message_of_a_pass(net, 0)
    dist.barrier()
    second = message_of_a_pass(net, 1)
    net.close()
    return first, second


def message_of_a_pass(net, step):
    try:
        net(batch(dist.get_rank(), step)).square().mean().backward()
    except Exception as error:  # noqa: BLE001 (the test looks at it)
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def killed(rank, size, store):
    """The error of each other rank after the last rank has ended itself between two steps."""
    within, _ = begin(rank, size, store)
    net = wrapped(within, codec="topk:0.1")
    train(net, range(2))
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    texts = [text for text in (message_of_a_pass(net, step) for step in range(3)) if text != "nothing was raised"]
    return texts[0] if texts else "nothing was raised"


def finished(value):
    """A future with this value, of no device."""
    made = torch.futures.Future()
    made.set_result(value)
    return made


class GathersFirst(within_host.WithinHostState):
    """Shards are gathered before they are averaged between hosts."""

    def _averaged(self, number, placed, buffer, is_last):
        return types.SimpleNamespace(future=finished(buffer))


class DoesNotDivide(within_host.WithinHostState):
    """Hosts add, and do not divide by their ranks."""

    def _reduce_scatter(self, bucket):
        bucket.buffer.mul_(self.parts)
        return super()._reduce_scatter(bucket)


class AnothersShard(within_host.WithinHostState):
    """The codec gets the shards in the place of others."""

    def _divided(self, bucket):
        made = super()._divided(bucket)
        made.pieces = [(part, begin, self.parts - 1 - row) for part, begin, row in made.pieces]
        return made


class GathersEarly(within_host.WithinHostState):
    """Averages that are there before the last bucket are gathered before its sums."""

    def gather_now(self):
        self._local.submit(self._gather_waiting).result()


class NoWaitForSums(within_host.WithinHostState):
    """The shards are copied down while the host adds them."""

    def _reduce_scatter(self, bucket):
        work, padded = super()._reduce_scatter(bucket)
        self.kept.append((work, padded))
        return finished(None), padded

    kept = []


class NoWaitForAverages(within_host.WithinHostState):
    """Shards are gathered in a stream that does not wait for their copy up, before which ten late copies keep its stream busy."""

    def _end(self, bucket, error, phases):
        host, lane = bucket.crossing.host, self._lanes[bucket.buffer.device]
        for _ in range(10):
            lane.up(torch.empty_like(host, device=lane.device), host)
        super()._end(bucket, error, phases)

    def _gather(self, bucket, averaged):
        super()._gather(bucket, finished(None))


class CompletesInAnotherStream(within_host.WithinHostState):
    """DDP goes on before the averages are in its memory."""

    def _gather(self, bucket, averaged):
        end, stream = bucket.end, torch.Stream(bucket.buffer.device)

        def end_elsewhere(error=None):
            with stream:
                end(error)
        bucket.end = end_elsewhere
        super()._gather(bucket, averaged)


@contextlib.contextmanager
def planted(made):
    """Replaces the state."""
    with mock.patch.object(syncopate.torch.ddp.wrapper, "WithinHostState", made):
        yield


def undetected(rank, size, store):
    """Names of mistakes with which training goes on to the right weights, and whether it does without one."""
    within, across = begin(rank, size, store)
    wanted = train(native(within, across))
    mistakes = [GathersFirst, DoesNotDivide, AnothersShard]
    mistakes += [NoWaitForSums, NoWaitForAverages, CompletesInAnotherStream] if DEVICE == "emu" else []
    missed = []
    for made in mistakes:
        with planted(made), late(copy_us=20_000):
            missed += [made.__name__] if torch.equal(train(wrapped(within)), wanted) else []
    with late(operator_us=2000, copy_us=5000):
        missed += [] if torch.equal(train(wrapped(within)), wanted) else ["nothing is planted, and the weights differ"]
    return missed


def order(rank, size, store):
    """The process group's collectives of a pass in their order, if the averages of all buckets but the last are there before it."""
    within, _ = begin(rank, size, store)
    issued = {}
    for made in (within_host.WithinHostState, GathersEarly):
        with planted(made):
            net = wrapped(within)
        train(net, range(2))  # DDP has formed its buckets again
        state, names = net.hook_state, []

        def wait(_, state=state):
            state._local.submit(lambda: None).result()  # the combiner has what was reduced
            state._combiner.wait()
            state._local.submit(lambda: None).result()
            if isinstance(state, GathersEarly):
                state.gather_now()

        def noted(call, kind, names=names):
            def issue(out, given, **options):
                names.append((kind, min(out.numel(), given.numel())))
                return call(out, given, **options)
            return issue

        net.module.picture.weight.register_hook(wait)  # of the last bucket
        with mock.patch.object(dist, "reduce_scatter_tensor", noted(dist.reduce_scatter_tensor, "reduce")), \
             mock.patch.object(dist, "all_gather_into_tensor", noted(dist.all_gather_into_tensor, "gather")):
            train(net, range(1))
        issued[made.__name__] = names
    return issued
