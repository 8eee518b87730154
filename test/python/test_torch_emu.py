"""The pretended accelerator computes what the processor does, and makes each missing wait visible."""

import math
import signal
import subprocess
import sys
import textwrap

import pytest
import torch
import torch_job  # skips where there is no torch
from device import emu
from torch import nn

assert torch_job
SLOW_US = 20_000
VALUES = torch.arange(1, 7, dtype=torch.float32).reshape(2, 3)


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(), nn.ConvTranspose2d(6, 4, 3), nn.Flatten(), nn.Linear(100, 4))


def layers():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.5), nn.Linear(16, 4))


def trained(make, loss, optimizer, device):
    torch.set_num_threads(1)  # as each stream of emu has; the bits of a sum depend on it
    torch.manual_seed(3)
    net = make().to(device)
    steps = optimizer(net.parameters())
    generator = torch.Generator().manual_seed(5)
    torch.manual_seed(7)  # of what dropout draws
    for _ in range(3):
        x = torch.randn(5, 3, 8, 8, generator=generator).to(device)
        y = torch.randint(0, 4, (5,), generator=generator).to(device)
        steps.zero_grad()
        loss(net(x), y).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        steps.step()
    return [value.cpu() for value in net.state_dict().values()]


def squares(output, target):
    return nn.functional.mse_loss(output, nn.functional.one_hot(target, 4).to(output.dtype))


@pytest.mark.parametrize("make", [convolutions, layers])
@pytest.mark.parametrize("loss", [nn.functional.cross_entropy, squares])
@pytest.mark.parametrize("optimizer", [lambda values: torch.optim.SGD(values, 0.1, momentum=0.9, weight_decay=0.01),
                                       lambda values: torch.optim.AdamW(values, 0.01)], ids=["sgd", "adamw"])
def test_training_has_the_bits_of_the_processor(make, loss, optimizer):
    with emu.delays(operator_us=20, copy_us=200):
        found = trained(make, loss, optimizer, "emu")
    for one, other in zip(found, trained(make, loss, optimizer, "cpu"), strict=True):
        assert torch.equal(one, other)


def test_pinned_memory_has_no_values_until_the_copy_ends():
    values, host, stream = VALUES.to("emu"), torch.zeros(2, 3, pin_memory=True), torch.Stream("emu")
    with emu.delays(copy_us=SLOW_US):
        with stream:
            host.copy_(values, non_blocking=True)
            end = stream.record_event()
        assert host.isnan().all() and not end.query()
        end.synchronize()
        assert torch.equal(host, VALUES)


def test_copies_take_the_time_of_their_bytes_at_a_rate():
    values, stream = torch.zeros(1 << 16, device="emu"), torch.Stream("emu")
    host = torch.empty(values.shape, pin_memory=True)
    for down in (True, False):
        begin, end = (torch.Event("emu", enable_timing=True) for _ in range(2))
        with emu.copy_rate(25e6), stream:
            begin.record(stream)
            (host if down else values).copy_(values if down else host, non_blocking=True)
            end.record(stream)
            end.synchronize()
        assert begin.elapsed_time(end) >= 1e3 * values.nbytes / 25e6


def test_a_stream_that_does_not_wait_copies_what_was_there_before():
    stream = torch.Stream("emu")
    for waits in (False, True):
        values, host = torch.zeros(2, 3, device="emu"), torch.zeros(2, 3, pin_memory=True)
        torch.accelerator.synchronize()
        twice = VALUES.to("emu") * 2
        emu.busy(0.2 if waits else 2)  # long: the other stream copies meanwhile, also on a busy machine
        values.copy_(twice)
        if waits:
            stream.wait_stream(torch.accelerator.current_stream())
        with stream:
            host.copy_(values, non_blocking=True)
        stream.synchronize()
        assert torch.equal(host, VALUES * 2 if waits else torch.zeros(2, 3))


def test_a_copy_up_does_not_lose_its_source_to_the_next_copy_down():
    values, host, stream = VALUES.to("emu"), torch.empty(2, 3, pin_memory=True).copy_(VALUES), torch.Stream("emu")
    with emu.delays(copy_us=SLOW_US), stream:
        target = torch.zeros(2, 3, device="emu")
        target.copy_(host, non_blocking=True)
        host.copy_(values + 1, non_blocking=True)
    assert torch.equal(target.cpu(), VALUES) and torch.equal(host, VALUES + 1)


def test_freed_memory_has_no_values_for_a_stream_that_nobody_recorded():
    for records in (False, True):
        stream, host = torch.Stream("emu"), torch.zeros(2, 3, pin_memory=True)
        values = VALUES.to("emu")
        with emu.delays(copy_us=SLOW_US):
            with stream:
                host.copy_(values, non_blocking=True)
            if records:
                values.record_stream(stream)
            del values
            torch.empty(1, device="emu")  # the next allocation in the memory's own stream
            stream.synchronize()
        assert torch.equal(host, VALUES) if records else host.isnan().all()


def test_values_move_between_devices():
    there = (VALUES.to("emu:0") + 1).to("emu:1")
    assert there.device == torch.device("emu", 1) and torch.equal(there.cpu(), VALUES + 1)


def test_an_event_stays_on_the_device_where_it_was_recorded():
    event = torch.Event("emu")
    event.record(torch.Stream("emu:0"))
    torch.Stream("emu:1").wait_event(event)
    with pytest.raises(RuntimeError, match="event of emu:0 cannot be recorded in a stream of emu:1"):
        event.record(torch.Stream("emu:1"))


def test_the_processor_cannot_read_a_devices_address():
    program = """
        import ctypes, torch
        from device import emu
        ctypes.string_at(torch.ones(1, device="emu").data_ptr(), 4)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=emu.Path(__file__).parent, check=False, capture_output=True)
    assert done.returncode == -signal.SIGSEGV, done.stderr


def test_an_operator_that_fails_in_its_stream_is_an_error_of_the_next_wait():
    values, places = torch.zeros(3, device="emu"), torch.tensor([7], device="emu")
    found = values.index_select(0, places)
    with pytest.raises(RuntimeError, match="index_select in a stream of emu: .*out of range"):
        found.cpu()


def test_an_event_has_the_time_of_its_stream():
    begin, end = (torch.Event("emu", enable_timing=True) for _ in range(2))
    values = VALUES.to("emu")
    with emu.delays(operator_us=SLOW_US):
        begin.record()
        values.add_(1)
        end.record()
        end.synchronize()
    assert SLOW_US / 2000 <= begin.elapsed_time(end) < math.inf
