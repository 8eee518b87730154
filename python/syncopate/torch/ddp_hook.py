"""The communication hook for DistributedDataParallel: any codec with feedback, on DDP's own buckets in place."""

from concurrent.futures import ThreadPoolExecutor

import torch

import syncopate
from syncopate.torch import meeting, parameters


class HookState:
    """What `hook` needs: how gradients are coded, and what the codec keeps of every gradient between steps.

    codec, exchange, algorithm: names from `syncopate info`; exchange ends with gradients. feedback: a kind, or a
    syncopate.Feedback. Every rank gives the same. The state can be pickled, as can `state_dict()`; it differs from rank to
    rank, and belongs to parameters by name, so that DDP may form other buckets. A loaded one needs `attach(model)`.
    """

    def __init__(self, model=None, process_group=None, *, timeout_s=1800, **coding):
        self.coding, self._timeout_s = coding, timeout_s
        self._model = self._process_group = self._combiner = self._saved = None
        self._thread = None
        if model is not None:
            self.attach(model, process_group)

    def attach(self, model, process_group=None):
        """Take the parameters of this model; the ranks of the process group (default: all) meet at the first bucket."""
        if self._combiner is not None:
            raise syncopate.Misuse("this state serves a model already; make another HookState")
        self._model, self._process_group = model, process_group

    def state_dict(self):
        """This rank's state after the last step, for a checkpoint of this rank's own."""
        saved = self._saved if self._combiner is None else self._thread.submit(self._combiner.save).result()
        return {"coding": dict(self.coding), "saved": saved}

    def load_state_dict(self, state):
        """Load what `state_dict()` gave; the coding must be the same."""
        if state["coding"] != self.coding:
            raise syncopate.Misuse(f"the saved state is of {state['coding']}; this one is of {self.coding}")
        self._saved = state["saved"]
        if self._combiner is not None and self._saved is not None:
            self._thread.submit(self._combiner.restore, *self._saved).result()

    def __getstate__(self):
        return {"timeout_s": self._timeout_s, **self.state_dict()}

    def __setstate__(self, state):
        self.__init__(timeout_s=state["timeout_s"], **state["coding"])
        self._saved = state["saved"]

    def close(self):
        """Leave the group of this state; buckets that are under way end first."""
        if self._combiner is not None:
            self._thread.shutdown()
            self._combiner.close()
            self._group.close()

    def combine(self, bucket):
        """Start averaging a bucket of DDP's; a future of its memory."""
        if self._thread is None:
            self._begin()
        placed = [(self._index[parameter], gradient.detach())
                  for parameter, gradient in zip(bucket.parameters(), bucket.gradients(), strict=True)]
        future = torch.futures.Future()
        self._thread.submit(self._carry_out, placed, bucket.buffer(), bucket.is_last(), future)
        return future

    def _begin(self):
        if self._model is None:
            raise syncopate.Misuse("this state has no model; call attach(model) after loading it")
        named = parameters.trained(self._model)
        self._index = {parameter: i for i, (_, parameter) in enumerate(named)}
        # Ranks agree on the order of operations only if no other code uses the group.
        self._group = meeting.own_group(self._process_group, self._timeout_s)
        self._combiner = syncopate.Combiner(self._group, parameters.gradients(named), weights=parameters.weights(named),
                                            **self.coding)
        if self._saved is not None:
            self._combiner.restore(*self._saved)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="syncopate hook")

    def _carry_out(self, placed, buffer, is_last, future):
        try:
            self._combiner.combine(placed)
            if is_last:
                self._combiner.end_step()
            future.set_result(buffer)
        except Exception as error:  # noqa: BLE001: DDP raises it where the backward pass ends
            future.set_exception(error)


def hook(state, bucket):
    """For `ddp.register_comm_hook(state, hook)`, with a HookState."""
    return state.combine(bucket)
