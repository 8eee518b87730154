"""DistributedDataParallel with buckets for the network, a codec, and its state: torch's own, with one import changed."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

import syncopate
from syncopate import _core
from syncopate.torch.ddp import buckets
from syncopate.torch.ddp.hook import HookState, hook
from syncopate.torch.ddp.within_host import WithinHostState
from syncopate.torch.shared import codec_choice

_ARGUMENTS = inspect.signature(torch.nn.parallel.DistributedDataParallel)
_BUCKETS = ("bucket_cap_mb", "bucket_cap_mb_list")


class DistributedDataParallel(torch.nn.parallel.DistributedDataParallel):
    """torch's DistributedDataParallel, with its arguments; `hook` averages the gradients, in a group of its own.

    codec, feedback, and other options of HookState: equal on all ranks. codec="auto:A+B" chooses after a few steps; `choice`
    says which and why, and so does the logger "syncopate". Buckets then stay those of uncoded gradients. With none among the
    codecs another one must shorten the step by the share `at_least` (0.05).

    Without `bucket_cap_mb` or `bucket_cap_mb_list` the constructor exchanges vectors of two sizes, and buckets follow from
    their times, the number of ranks and the model. A warning says when the exchange is so short that nothing can help.

    sample: the module's argument, a tuple of arguments, or a dict of keyword arguments, on every rank. The constructor then
    measures the backward pass too, and DDP forms the buckets of `policy` ("exact_dp", "mg_wfbp" ...), which differ in size.
    loss: a function of the output that gives a scalar; by default as `profile`. Before torch 2.11, and with several types of
    parameters, buckets have equal sizes also with a sample.

    within: "host", or the process group of this rank's host, such as one of NCCL: it reduces and gathers within the host, and each
    rank averages its share of the gradients between hosts with the codec, see WithinHostState.

    `state_dict()` is torch's. `codec_state()` has what the codec keeps of the gradients, which is this rank's own. A pickle
    has both, and is loaded into the process group that exists then. `close()` leaves the group.
    """

    def __init__(self, module: torch.nn.Module, *args: Any, codec: str | syncopate.Codec = "none",
                 feedback: str | syncopate.Feedback = "auto", at_least: float | None = None,
                 within: str | dist.ProcessGroup | None = None, sample: Any = None, loss: Callable[[Any], torch.Tensor] | None = None,
                 policy: str = "exact_dp", **options: Any) -> None:
        others = [name for name in options if name not in _ARGUMENTS.parameters]
        coding = codec_choice.known({"codec": codec, "feedback": feedback} | {name: options.pop(name) for name in others})
        bound = _ARGUMENTS.bind(module, *args, **options)
        given = bound.arguments
        state = HookState(at_least=at_least, **coding) if within is None else WithinHostState(within, at_least=at_least, **coding)
        state.attach(module, _process_group(given))
        dense, coded = _laws(state, coding)
        if dense and coded and not any(given.get(name) for name in _BUCKETS):
            measuring = None if sample is None else buckets.Measuring(sample, loss, policy)
            is_rebuilt = not given.get("find_unused_parameters") or bool(given.get("static_graph"))
            given.update(buckets.sizes(state.job, coded.of_parts(state.parts), module, measuring, is_rebuilt=is_rebuilt))
        super().__init__(*bound.args, **bound.kwargs)
        self._dense_law, self._is_judged = dense, False
        self._use(state)

    def _use(self, state: HookState) -> None:
        self.hook_state = state
        self._comm_hooks = []
        self.register_comm_hook(state, hook)

    @property
    def choice(self) -> codec_choice.Choice | None:
        """The Choice of `codec="auto:A+B"`: codec, predicted_s, reason; None before it is made."""
        choice: codec_choice.Choice | None = self.hook_state.choice
        return choice

    def codec_state(self) -> dict[str, Any]:
        """The codec's state on this rank after the last step, for a checkpoint of this rank's own."""
        state: dict[str, Any] = self.hook_state.state_dict()
        return state

    def load_codec_state(self, state: dict[str, Any]) -> None:
        """Load what `codec_state()` gave; codec and feedback must be the same."""
        self.hook_state.load_state_dict(state)

    def close(self) -> None:
        """Leave the group of the hook, on every rank; `module` has the weights. No backward pass may follow."""
        self.hook_state.close()

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's output."""
        if not self._is_judged and self.hook_state.timeline.is_complete:
            self._is_judged = True
            self._judge()
        with _first_bucket_at_most(self.bucket_bytes_cap):
            return super().forward(*inputs, **kwargs)

    def _judge(self) -> None:
        """Warn if uncoded gradients, too, would arrive with the end of the backward pass."""
        dense = self._dense_law
        if dense is None or self.hook_state.job.rank != 0 or (self.choice and self.choice.codec != "none"):
            return
        step_s, passes_s = self._uncoded_step(dense)
        exposed_s = step_s - passes_s
        if exposed_s < codec_choice.WORTH * step_s:
            warnings.warn(f"the network is fast enough: uncoded gradients delay a step of {1e3 * step_s:.1f} ms by {1e3 * exposed_s:.1f} ms, "
                          "and no codec or size of buckets can save more", stacklevel=3)

    def _uncoded_step(self, dense: codec_choice.Law) -> tuple[float, float]:
        """Seconds with the exchange and without it, which are those of the choice if there is one."""
        if self.choice:
            return self.choice.predicted_s["none"], self.choice.passes_s
        timeline = self.hook_state.timeline
        ready_s = timeline.ready_s()
        return _core.exchanges_end_s(ready_s, [dense.seconds(size) for size in timeline.sizes]), ready_s[-1]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.hook_state.attach(self)
        self._use(self.hook_state)


@contextlib.contextmanager
def _first_bucket_at_most(size: int) -> Iterator[None]:
    """torch.compile divides the module as DDP its buckets, and accepts none that are smaller than the first one's default."""
    before = dist._DEFAULT_FIRST_BUCKET_BYTES
    dist._DEFAULT_FIRST_BUCKET_BYTES = min(before, size)
    try:
        yield
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = before


def _process_group(given: dict[str, Any]) -> dist.ProcessGroup | None:
    mesh = given.get("device_mesh")
    return given.get("process_group") or (mesh.get_group(mesh_dim=0) if mesh is not None else None)


def _laws(state: HookState, coding: dict[str, Any]) -> tuple[codec_choice.Law, codec_choice.Law] | tuple[None, None]:
    """Those of uncoded gradients and of these; nothing for one rank."""
    if state.group.size == 1:
        return None, None
    dense = state.law(codec_choice.with_codec(coding, "none"))
    is_dense = coding["codec"] == "none" or _core.auto_codecs(coding["codec"])
    return dense, dense if is_dense else state.law(coding)
