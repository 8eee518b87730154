"""A module whose weights are rows on parameter servers: a batch pulls the rows of its ids, and the backward pass pushes their gradients."""

import torch

import syncopate


class Embedding(torch.nn.Module):
    """As torch.nn.Embedding without a number of rows: ids are any int64, and servers make a row on its first access.

    worker: a TableWorker that has not started; the rows are a table of it, with these options of `create_rows`. The
    servers update them by `rule` with the rate `lr`, an attribute, in each backward pass; neither `parameters()` nor
    `state_dict` has them. The rate applies to each worker's gradient: for the step of the average
    over N workers, divide it by N. Ids and rows are in the CPU's memory. Raises as TableWorker does, also from the backward
    pass.
    """

    def __init__(self, worker, name, width, lr, **options):
        super().__init__()
        self.worker, self.width, self.lr = worker, width, lr
        self.table = worker.create_rows(name, width, **options)
        self._differentiable = torch.empty(0, requires_grad=True)  # without it, no backward pass would come here

    def forward(self, ids):
        """The rows of a tensor of ids: its shape, and `width`."""
        return _Rows.apply(ids, self._differentiable, self)

    def extra_repr(self):
        return f"{self.width}, table={self.table}, lr={self.lr}"

    def __getstate__(self):
        raise syncopate.Misuse("the rows of an Embedding are on the servers, and its table belongs to its worker; save neither")


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(context, ids, _, module):
        context.ids, context.module = ids.contiguous(), module
        rows = torch.empty(*ids.shape, module.width)
        module.worker.pull_rows(module.table, context.ids, rows)
        return rows

    @staticmethod
    def backward(context, gradients):
        module = context.module
        module.worker.push_rows(module.table, context.ids, gradients.contiguous(), float(module.lr))
        return None, None, None
