"""Makes the pretended accelerator known to torch as device "emu": what a vendor's module has, and the settings of tests."""

import contextlib
import ctypes
import types
from pathlib import Path

import torch

import syncopate

LIBRARY = Path(syncopate.__file__).parents[2] / "test" / "python" / "libemu.so"  # in the build tree, which has the package too
DEVICES = 2


class _Device:
    """`with torch.emu.device(index)`."""

    def __init__(self, device):
        self._index = device if isinstance(device, int) else torch.device(device).index or 0

    def __enter__(self):
        self._before = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(self._index)

    def __exit__(self, *_):
        torch.accelerator.set_device_index(self._before)


def _random_state(device="emu"):
    torch.accelerator.synchronize(device)
    index = torch.device(device).index or 0
    state = torch.empty(_library.emu_random_state(index, None), dtype=torch.uint8, device="cpu")
    _library.emu_random_state(index, ctypes.c_void_p(state.data_ptr()))
    return state


def _set_random_state(state, device="emu"):
    torch.accelerator.synchronize(device)
    _library.emu_set_random_state(torch.device(device).index or 0, ctypes.c_void_p(state.data_ptr()))


def _module():
    """torch.emu, as far as torch itself calls it."""
    module = types.ModuleType("torch.emu")
    module.is_available = module.is_initialized = lambda: True
    module.device_count = lambda: DEVICES
    module.current_device = torch.accelerator.current_device_index
    module.set_device = torch.accelerator.set_device_index
    module._is_in_bad_fork = lambda: False
    module._lazy_init = lambda: None
    module.manual_seed_all = _library.emu_manual_seed
    module.get_rng_state, module.set_rng_state = _random_state, _set_random_state
    module.device, module.Event = _Device, torch.Event
    module.Stream = lambda device=None, priority=0: torch.Stream(device or torch.device("emu", torch.accelerator.current_device_index()))
    module.current_stream, module.synchronize = torch.accelerator.current_stream, torch.accelerator.synchronize
    module.stream = lambda stream: stream
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    return module


def _begin():
    torch.ops.load_library(str(LIBRARY))
    library = ctypes.CDLL(str(LIBRARY))
    library.emu_manual_seed.argtypes, library.emu_manual_seed.restype = [ctypes.c_uint64], None
    for name in ("emu_operators", "emu_copies", "emu_host_waits"):
        getattr(library, name).restype = ctypes.c_long
    library.emu_bytes.restype = library.emu_random_state.restype = ctypes.c_size_t
    library.emu_set_random_state.restype = library.emu_copy_rate.restype = library.emu_busy.restype = None
    library.emu_copy_rate.argtypes = [ctypes.c_double]
    return library


torch.utils.rename_privateuse1_backend("emu")
_library = _begin()
torch._register_device_module("emu", _module())
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


@contextlib.contextmanager
def delays(operator_us=0, copy_us=0, seed=1):
    """In it each operator, and each copy between host and device, waits for a drawn time, at most these microseconds, before it begins."""
    _library.emu_delays(operator_us, copy_us, seed)
    try:
        yield
    finally:
        for device in range(DEVICES):
            torch.accelerator.synchronize(device)
        _library.emu_delays(0, 0, seed)


def busy(seconds):
    """The current stream is busy for this time, as by torch.cuda._sleep."""
    _library.emu_busy(round(seconds * 1e6))


@contextlib.contextmanager
def copy_rate(bytes_per_s):
    """In it the copies of a stream between host and device take as long as their bytes at this rate."""
    _library.emu_copy_rate(bytes_per_s)
    try:
        yield
    finally:
        for device in range(DEVICES):
            torch.accelerator.synchronize(device)
        _library.emu_copy_rate(0)


def counts():
    """How many operators and copies have ended, how often the host has waited, and the bytes of devices that are in use."""
    return {name: getattr(_library, f"emu_{name}")() for name in ("operators", "copies", "host_waits", "bytes")}
