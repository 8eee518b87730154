"""The library's DistributedDataParallel in jobs of two ranks: buckets, codecs that it chooses, and state that goes on."""

import dataclasses
import inspect
import logging
import pickle
import warnings
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as Plain
from torch_hook import backward, bits, model, train

import syncopate
import syncopate.torch
from syncopate.torch.analysis import planning
from syncopate.torch.ddp import buckets
from syncopate.torch.ddp.wrapper import DistributedDataParallel
from syncopate.torch.shared import codec_choice

STEPS = codec_choice.STEPS + 4  # the first two form buckets


def same_bits_as_plain_ddp(rank):
    parameters = inspect.signature(Plain).parameters
    positions = [parameters[name].default for name in parameters][1:list(parameters).index("bucket_cap_mb")]
    plain, ours = Plain(model(), *positions), DistributedDataParallel(model(), *positions)
    for net in (plain, ours):
        train(net, rank, range(3))
    same = bits(plain) == bits(ours) and plain.state_dict().keys() == ours.state_dict().keys()
    return [] if same and isinstance(ours, Plain) else ["it is not torch's"]


def buckets_of_the_network(rank):
    """Ranks have the same, of all bytes; the user's size counts if there is one."""
    nets = model(), model()
    before = torch.get_rng_state()
    chosen, given = DistributedDataParallel(nets[0]), DistributedDataParallel(nets[1], bucket_cap_mb=3)
    if not torch.equal(before, torch.get_rng_state()):
        return ["measuring the network draws from the job's random numbers"]
    train(chosen, rank, range(3))
    (size, formed), other = found = everywhere((chosen.bucket_bytes_cap, chosen.hook_state.timeline.sizes))
    whole = sum(4 * p.numel() for p in chosen.parameters())
    right = (size, formed) == other and size & (size - 1) == 0 and sum(formed) == whole and given.bucket_bytes_cap == 3 << 20
    return [] if right else [f"{found} of {whole}"]


class Crossed(nn.Module):
    """The layers of `model`, of which the last one is registered first."""

    def __init__(self):
        super().__init__()
        self.last, self.first, self.middle = model()[4], model()[0], model()[2]

    def forward(self, x):
        return self.last(self.middle(self.first(x).relu()).relu())


def planned(net, rank, **options):
    """Trained with MG-WFBP's buckets, where a message starts in 1.5 ms and gradients arrive at certain times.

    These are, in order: last.bias, last.weight, middle.bias, middle.weight, first.bias, first.weight. Each comes 1 ms after the one
    before, but middle.bias and first.weight come after 10 ms.
    """
    measure = planning.profile

    def known(*arguments, **given):
        found = measure(*arguments, **given)
        late = ("middle.bias", "first.weight")
        return dataclasses.replace(found, layers=tuple(dataclasses.replace(layer, backward_s=1e-2 if layer.name in late else 1e-3)
                                                       for layer in found.layers))

    with (mock.patch.object(planning, "profile", known),
          mock.patch.object(codec_choice, "law", lambda *_, **__: codec_choice.Law(1.5e-3, 1e-12))):
        ours = DistributedDataParallel(net, sample=torch.randn(8, 32), policy="mg_wfbp", **options)
    train(ours, rank, range(3))
    return tuple(ours.bucket_bytes_cap_list), ours.hook_state.timeline.sizes


def everywhere(value):
    """That of every rank."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def buckets_of_a_plan(rank):
    """Worked out by hand: a bucket may end within a layer. If DDP keeps its first buckets, layers are in the order of registration."""
    if not buckets.ACCEPTS_LIST:
        return []
    last, middle, first = 160 * 4, 128 * 160, 32 * 128  # elements of the weights
    arriving = tuple(4 * elements for elements in (4 + last, 160 + middle + 128, first))
    registered = tuple(4 * elements for elements in (160 + middle + 128, first + 4 + last))  # from the end; `last` is the first one
    wrong = [] if everywhere(planned(Crossed(), rank)) == [(arriving, arriving)] * 2 else ["by arrival"]
    kept = planned(Crossed(), rank, find_unused_parameters=True)
    return wrong + ([] if kept == (registered[::-1], registered) else [f"by registration: {kept}, not {registered}"])


def buckets_of_a_measured_plan(rank):
    """All ranks have the same; the model and the job's random numbers stay as they were; old versions of torch get one size."""
    twin, before = bits(model()), torch.get_rng_state()
    net = DistributedDataParallel(model(), sample=torch.zeros(8, 32), loss=lambda output: output.square().sum())
    wrong = [] if bits(net) == twin and torch.equal(torch.get_rng_state(), before) else ["measuring changes the job"]
    train(net, rank, range(3))
    if buckets.ACCEPTS_LIST:
        same = everywhere((tuple(net.bucket_bytes_cap_list), net.hook_state.timeline.sizes))
        wrong += [] if len({one for pair in same for one in pair}) == 1 else [f"planned and formed: {same}"]
    with mock.patch.object(buckets, "ACCEPTS_LIST", False):
        net = DistributedDataParallel(model(), sample=torch.zeros(8, 32))
    size = net.bucket_bytes_cap
    wrong += [] if not getattr(net, "bucket_bytes_cap_list", []) and size & (size - 1) == 0 else ["without the list"]
    mixed = nn.Sequential(nn.Linear(32, 128), nn.Linear(128, 4).bfloat16())
    net = DistributedDataParallel(mixed, sample=torch.zeros(8, 32))
    return wrong + ([] if not getattr(net, "bucket_bytes_cap_list", []) else ["several types"])


def profiled_together(rank):
    """Each time is that of the slower rank, and the order is rank 0's."""
    measure = planning._profile

    def uneven(*arguments):
        found = measure(*arguments)
        layers = [dataclasses.replace(layer, backward_s=float((rank + i) % 2)) for i, layer in enumerate(found.layers)]
        return dataclasses.replace(found, forward_s=1.0 + rank, layers=tuple(layers if rank == 0 else layers[::-1]))

    with mock.patch.object(planning, "_profile", uneven):
        found = planning.profile(Crossed(), torch.zeros(8, 32), process_group=dist.group.WORLD)
    wrong = [] if everywhere(found) == [found] * 2 and found.forward_s == 2 else [str(found)]
    alone = measure(Crossed(), torch.zeros(8, 32), None, None, 1, None)
    same = [(layer.name, layer.elements, 1.0) for layer in alone.layers] == [(layer.name, layer.elements, layer.backward_s) for layer in found.layers]
    return wrong + ([] if same else [f"layers: {found.layers}"])


def chooses_after_some_steps(rank):
    """Both ranks choose the same codec, log it once, and go on with equal weights."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("syncopate").addHandler(handler)
    logging.getLogger("syncopate").setLevel(logging.INFO)
    net = DistributedDataParallel(model(), codec="auto:topk:0.01+none")
    before = []
    for step in range(STEPS):
        before.append(net.choice)
        train(net, rank, [step])
    choice = net.choice
    mine, others = everywhere((choice, bits(net)))
    wrong = [] if mine == others else ["ranks differ"]
    wrong += [] if before[:codec_choice.STEPS] == [None] * codec_choice.STEPS and choice else ["not after some steps"]
    wrong += [] if choice and set(choice.predicted_s) == {"topk:0.01", "none"} and choice.codec in choice.predicted_s else [str(choice)]
    wrong += [] if lines == [f"codec {choice.codec}: {choice.reason}"] * (rank == 0) else [str(lines)]
    return wrong


def uses_what_it_chose(rank):
    """From the choice on, the only codec that is allowed gives the averages of a hook that begins with it."""
    net = DistributedDataParallel(model(), codec="auto:topk:0.01")
    steps = 0
    while net.choice is None:
        train(net, rank, [steps])
        steps += 1
    twin = model()
    twin.load_state_dict(net.module.state_dict())
    twin = DistributedDataParallel(twin, codec="topk:0.01")
    for one in (net, twin):
        train(one, rank, range(steps, steps + 3))
    return [] if bits(net) == bits(twin) else ["other averages than those of topk"]


def chooses_by_the_share_that_is_demanded(rank):
    """A codec that halves a step is not taken if it must save 90 %, and otherwise is."""
    wrong = []
    for at_least, chosen in ((None, "topk:0.01"), (0.9, "none")):
        net = DistributedDataParallel(model(), codec="auto:topk:0.01+none", at_least=at_least)

        def costs(group, gradients, copies, *_):
            return {"topk:0.01": [50.0] * len(copies), "none": [100.0] * len(copies)}

        with mock.patch.object(codec_choice, "costs", costs):
            train(net, rank, range(STEPS))
        wrong += [] if net.choice.codec == chosen else [str(net.choice)]
        kept = pickle.loads(pickle.dumps(net.hook_state))
        wrong += [] if kept._gain == (at_least or codec_choice.WORTH) else ["the share is not pickled"]
    return wrong


def warns_on_a_fast_network(rank):
    """By the times of the choice, if there is one; and not if a codec was chosen."""
    net = DistributedDataParallel(model())
    train(net, rank, range(STEPS))
    wrong = []
    fast, slow = codec_choice.Law(0, 1e-15), codec_choice.Law(1, 0)
    coded, uncoded = codec_choice.Choice("topk:0.1", {}, ""), codec_choice.Choice("none", {"none": 1.0}, "", passes_s=0.99)
    for name, law, choice, wanted in (("fast", fast, None, "fast enough"), ("slow", slow, None, ""), ("chosen", fast, coded, ""),
                                      ("none", slow, uncoded, "a step of 1000.0 ms by 10.0 ms")):
        net._dense_law, net.hook_state.choice, net._is_judged = law, choice, False
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            backward(net, rank, 0)
            backward(net, rank, 0)
        found = [str(one.message) for one in heard if "fast enough" in str(one.message)]
        wrong += [] if len(found) == bool(wanted and rank == 0) and all(wanted in text for text in found) else [f"{name}: {found}"]
    return wrong


def refuses_unknown_codecs(rank):
    """A codec of `auto` is refused by the constructor, with the names that are allowed."""
    for codec in ("zip", "auto:zip+none", "auto:"):
        try:
            DistributedDataParallel(model(), codec=codec)
        except syncopate.Misuse as error:
            if "allowed" in str(error):
                continue
        return [codec]
    return []


def goes_on_in_a_new_process_group(rank, size, store):
    """By pickle, and by state_dict with codec_state; without the codec's state the weights become others."""
    kept, made = {}, {}
    coding = {"codec": "auto:topk:0.01", "feedback": syncopate.Feedback("residual", clip_norm=10)}
    net = DistributedDataParallel(model(), **coding)
    steps = range(STEPS, STEPS + 3)
    train(net, rank, range(STEPS))
    kept = pickle.dumps({"pickled": net, "weights": net.state_dict(), "codec": net.codec_state()})
    train(net, rank, steps)
    wanted = bits(net)
    dist.destroy_process_group()
    dist.init_process_group("gloo", init_method=store + "-again", rank=rank, world_size=size)
    loaded = pickle.loads(kept)
    made["pickled"] = loaded["pickled"]
    for name in ("loaded", "forgotten"):
        made[name] = DistributedDataParallel(model(), **coding)
        made[name].load_state_dict(loaded["weights"])
    made["loaded"].load_codec_state(loaded["codec"])
    wrong = []
    for name, other in made.items():
        train(other, rank, steps)
        wrong += [] if (bits(other) == wanted) == (name != "forgotten") else [name]
    return wrong


def everything(rank, size, store):
    """Returns what is wrong, by name."""
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    wrong = {claim.__name__: claim(rank) for claim in (same_bits_as_plain_ddp, buckets_of_the_network, buckets_of_a_plan,
                                                       buckets_of_a_measured_plan, profiled_together, chooses_after_some_steps, uses_what_it_chose,
                                                       chooses_by_the_share_that_is_demanded, warns_on_a_fast_network,
                                                       refuses_unknown_codecs)}
    wrong["goes on"] = goes_on_in_a_new_process_group(rank, size, store)
    dist.destroy_process_group()
    return {name: what for name, what in wrong.items() if what}
