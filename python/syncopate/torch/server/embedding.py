"""A module whose weights are rows on parameter servers: a batch pulls the rows of its ids, and the backward pass pushes their gradients."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

import syncopate

ROWS_AT_ONCE = 4096  # of a loaded state, which are copied on their way


class Embedding(torch.nn.Module):
    """As torch.nn.Embedding without a number of rows: ids are any int64, and servers make a row on its first access.

    worker: a TableWorker that has not started; the rows are a table of it, with these options of `create_rows`. The
    servers update them by `rule` with the rate `lr`, an attribute, in each backward pass; `parameters()` lacks them. The rate
    applies to each worker's gradient: for the step of the average over N workers, divide it by N. Ids and rows are in the
    CPU's memory. Raises as TableWorker does, also from the backward pass.

    `state_dict` has all rows with their state, in the memory of the worker; every worker calls it between the same steps, and
    waits for the others. Every worker calls `load_state_dict` before its first forward pass, which sends the rows to the
    servers, also with another number of workers or servers.
    """

    def __init__(self, worker: syncopate.TableWorker, name: str, width: int, lr: float, **options: Any) -> None:
        super().__init__()
        self.worker, self.width, self.lr = worker, width, lr
        self.table = worker.create_rows(name, width, **options)
        self._rule = options.get("rule", "sgd")
        self._loaded: dict[str, Any] | None = None  # a state that no forward pass has sent
        self._used = False  # whether there was a forward pass
        self._differentiable = torch.empty(0, requires_grad=True, device="cpu")  # without it, no backward pass would come here

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of a tensor of ids: its shape, and `width`."""
        self._restore()
        rows: torch.Tensor = _Rows.apply(ids, self._differentiable, self)
        return rows

    def _restore(self) -> None:
        self._used = True
        if self._loaded is None:
            return
        arrays = [self._loaded[name] for name in ("ids", "steps", "values")]
        for part in zip(*(array.split(ROWS_AT_ONCE) for array in arrays), strict=True):
            self.worker.restore_rows(self.table, syncopate.KeptRows(self._rule, *part))
        self._loaded = None

    def get_extra_state(self) -> dict[str, Any]:
        """The part of `state_dict` that has the rows: ids, numbers of steps, and values with those of the rule's states."""
        if self._loaded is not None:
            return self._loaded
        parts: list[syncopate.KeptRows] = []
        self.worker.visit_rows(self.table, parts.append)
        ids, steps, values = (torch.cat([torch.empty(0, dtype=dtype, device="cpu"), *(torch.from_dlpack(getattr(part, name)) for part in parts)])
                              for name, dtype in (("ids", torch.int64), ("steps", torch.int64), ("values", torch.float32)))
        return {"rule": self._rule, "width": self.width, "ids": ids, "steps": steps, "values": values.view(len(ids), -1) if parts else values}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take the rows of `get_extra_state`, for the next forward pass to send."""
        if self._used:
            raise syncopate.Misuse("the rows are in use; allowed: load_state_dict before the first forward pass")
        own = {"rule": self._rule, "width": self.width}
        if (saved := {name: state[name] for name in own}) != own:
            raise syncopate.Misuse(f"the saved rows have {saved}, these have {own}; allowed: equal ones")
        self._loaded = state

    def extra_repr(self) -> str:
        """Width, table and learning rate."""
        return f"{self.width}, table={self.table}, lr={self.lr}"

    def __getstate__(self) -> NoReturn:
        raise syncopate.Misuse("the rows of an Embedding are on the servers, and its table belongs to its worker; save its state_dict()")


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, ids: torch.Tensor, _: torch.Tensor, module: Embedding) -> torch.Tensor:
        context.ids, context.module = ids.contiguous(), module
        rows = torch.empty(*ids.shape, module.width, device="cpu")
        module.worker.pull_rows(module.table, context.ids, rows)
        return rows

    @staticmethod
    def backward(context: Any, gradients: torch.Tensor) -> tuple[None, None, None]:
        module = context.module
        module.worker.push_rows(module.table, context.ids, gradients.contiguous(), float(module.lr))
        return None, None, None
