"""Training of torch unchanged on the backend: DDP, FSDP2, DTensor, DeviceMesh and DCP, each against one process alone."""

import copy
import tempfile

import torch
import torch.distributed as dist
from device import chosen
from device.chosen import DEVICE
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 4, 8


def model():
    """A network with equal weights on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).double()


def batch(step):
    """The samples of all ranks in one step."""
    generator = torch.Generator().manual_seed(step)
    return [torch.randn(BATCH, width, generator=generator, dtype=torch.float64, device="cpu").to(DEVICE) for width in (16, 4)]


def train(net, rank, size, optimizer=None):
    """Each rank takes its share of every batch."""
    optimizer = optimizer or torch.optim.Adam(net.parameters(), 0.01)
    for step in range(STEPS):
        samples, targets = (tensor.chunk(size)[rank] for tensor in batch(step))
        optimizer.zero_grad()
        nn.functional.mse_loss(net(samples), targets).backward()
        optimizer.step()
    return net


def alone():
    """The weights that one process ends with."""
    return train(model(), 0, 1).state_dict()


def differences(found, wanted):
    """Names of weights that are not what one process computes."""
    return [name for name, value in wanted.items() if not torch.allclose(found[name], value, rtol=1e-9, atol=1e-12)]


def ddp(rank, size):
    """DDP: weights as alone, also with a hook that halves the bytes, and with uneven inputs under join."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    net = train(DistributedDataParallel(model(), bucket_cap_mb=0.01), rank, size).module
    wrong = differences(net.state_dict(), alone())
    hooked = DistributedDataParallel(model().float(), bucket_cap_mb=0.01)
    hooked.register_comm_hook(None, default_hooks.fp16_compress_hook)
    power = DistributedDataParallel(model().float())  # one bucket: its callbacks start collectives, in no order with others
    power.register_comm_hook(powerSGD_hook.PowerSGDState(None, 1, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    for net in (hooked, power):
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(STEPS):
            optimizer.zero_grad()
            net(batch(step)[0].float()[rank:rank + 2]).sum().backward()
            optimizer.step()
        wrong += [] if equal_everywhere(net.module, size) else [f"weights differ between ranks with {net}"]
    uneven = DistributedDataParallel(model())
    with uneven.join():
        for _ in range(rank + 1):
            uneven(batch(0)[0]).sum().backward()
    logged = uneven._get_ddp_logging_data()["backend_name"]
    return wrong + ([] if logged == "syncopate" else [f"DDP logs the backend {logged}"])


def equal_everywhere(net, size):
    """Whether all ranks have the same bits."""
    sums = [None] * size
    dist.all_gather_object(sums, [parameter.detach().cpu().numpy().tobytes() for parameter in net.parameters()])
    return all(one == sums[0] for one in sums)


def fsdp(rank, size):
    """FSDP2: weights as alone, saved and loaded by DCP into another shape."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh(DEVICE, (size,))
    net = model()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, rank, size)
    wrong = differences({name: value.full_tensor() for name, value in net.state_dict().items()}, alone())
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    dcp.save({"model": get_model_state_dict(net)}, checkpoint_id=folder[0])
    whole = model()
    state = {"model": copy.deepcopy(whole.state_dict())}
    dcp.load(state, checkpoint_id=folder[0])
    set_model_state_dict(whole, state["model"])
    return wrong + [f"{name} from the checkpoint" for name in differences(whole.state_dict(), alone())]


def tensors(rank, size):
    """DTensor on a mesh of two dimensions: a product whose factors are sharded, and every change of placement."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh(DEVICE, (size // 2, 2), mesh_dim_names=("data", "model"))
    torch.manual_seed(1)
    left, right = torch.randn(8, 6, dtype=torch.float64), torch.randn(6, 4, dtype=torch.float64)
    one = distribute_tensor(left, mesh, [Shard(0), Shard(1)])
    two = distribute_tensor(right, mesh, [Replicate(), Shard(0)])
    wrong = [] if torch.allclose((one @ two).full_tensor(), left @ right) else ["product"]
    for placements in ([Shard(1), Shard(0)], [Replicate(), Shard(1)], [Shard(0), Replicate()]):
        moved = one.redistribute(mesh, placements)
        wrong += [] if isinstance(moved, DTensor) and torch.equal(moved.full_tensor(), left) else [f"{placements}"]
    ones = torch.ones(3)
    dist.all_reduce(ones, group=mesh["model"].get_group())
    return wrong + ([] if ones[0] == 2 else ["a group of the mesh"])


def everything(rank, size, store):
    """Returns what is wrong, by name."""
    chosen.begin(rank, size, store, "syncopate")
    chosen.make_default()
    wrong = {part.__name__: part(rank, size) for part in (ddp, fsdp, tensors)}
    dist.destroy_process_group()
    return wrong
