"""Weights of accelerators that the library updates in the memory of the CPU: gradients come down, and weights go up."""

from __future__ import annotations

from collections.abc import Sequence

import torch

import syncopate
from syncopate.torch.device.copies import Copies, Weights
from syncopate.torch.device.lane import Crossing


class StagedUpdates:
    """Weights on accelerators that an optimizer of the library updates in `hosts`: `take` before the update, and `give` after it.

    Weights are copied down, too, because the program may have changed them.
    """

    def __init__(self, named: Sequence[tuple[str, torch.Tensor]], hosts: list[torch.Tensor]) -> None:
        self._parameters, self._hosts = [parameter for _, parameter in named], hosts
        self._taken: list[int] = []
        self.copies = Copies(lambda text: None, self._parameters)

    def take(self) -> list[torch.Tensor | None]:
        """The gradients on the host, None where a parameter has none; the parameters' own become zero."""
        down = self.copies.down
        gradients = {i: parameter.grad for i, parameter in enumerate(self._parameters) if parameter.grad is not None}
        self._taken = list(gradients)
        for i in self._taken:
            down(Weights(i), self._parameters[i].detach(), self._hosts[i])
        crossings = {i: down(i, gradient) for i, gradient in gradients.items()}
        for i, crossing in crossings.items():
            crossing.wait()
            crossing.release()
            gradients[i].zero_()
        return [crossings[i].host if i in crossings else None for i in range(len(self._parameters))]

    def give(self) -> None:
        """Begin to copy the weights of parameters that had gradients up; the current stream goes on with them."""
        self.copies.follow()
        for i in self._taken:
            self.copies.up(Weights(i), self._parameters[i].detach(), self._hosts[i])


class StagedShards:
    """Weights on accelerators that a Synchronizer updates in `hosts`; it has its `wait`, `wait_for_gradient` and `close`.

    shards: this rank's elements of each, (begin, end), which are copied down with the gradient, because the program may have
    changed them. All weights come up.
    """

    def __init__(self, synchronizer: syncopate.Synchronizer, group: syncopate.Group, named: Sequence[tuple[str, torch.Tensor]],
                 hosts: list[torch.Tensor], shards: list[tuple[int, int]]) -> None:
        self._synchronizer, self.copies = synchronizer, Copies(group.abort, [parameter for _, parameter in named])
        self._memory: list[torch.Tensor] = [torch.from_dlpack(synchronizer.gradient(i)) for i in range(len(named))]
        self._values, self._hosts, self._shards = [parameter.detach() for _, parameter in named], hosts, shards
        self._stale: set[int] = set()  # those whose device does not have the weights of this step

    def send(self, i: int, gradient: torch.Tensor | None) -> None:
        """The gradient is completely written by the current stream; None: it is zero. Returns at once."""
        own = slice(*self._shards[i])
        self.copies.down(Weights(i), self._values[i].view(-1)[own], self._hosts[i].view(-1)[own])
        crossing = self.copies.down(i, torch.zeros_like(self._values[i]) if gradient is None else gradient)
        self._stale.add(i)
        self.copies.then(crossing, self._arrived, i, crossing)

    def _arrived(self, i: int, crossing: Crossing) -> None:
        crossing.release()
        self._memory[i].copy_(crossing.host)
        self._synchronizer.ready(i)

    def wait_for_gradient(self, i: int) -> None:
        """The current stream goes on when the device has the weights of parameter i. Raises as the synchronizer's."""
        self.copies.land()
        self._synchronizer.wait_for_gradient(i)
        self._give(i)

    def wait(self) -> None:
        """The current stream goes on when the devices have all weights of this step. Raises as the synchronizer's."""
        self.copies.land()
        self._synchronizer.wait()
        for i in sorted(self._stale):
            self._give(i)

    def _give(self, i: int) -> None:
        if i in self._stale:
            self._stale.remove(i)
            self.copies.up(Weights(i), self._values[i], self._hosts[i])

    def close(self) -> None:
        """End the thread of the copies, and the synchronizer."""
        self.copies.close()
        self._synchronizer.close()


class StagedTables:
    """Weights on accelerators as tables of a TableWorker, which it keeps in `hosts`; it has its calls, by the numbers of parameters."""

    def __init__(self, worker: syncopate.TableWorker, named: Sequence[tuple[str, torch.Tensor]], hosts: list[torch.Tensor]) -> None:
        self._worker, self._parameters, self._hosts = worker, [parameter for _, parameter in named], hosts
        self._copies = Copies(lambda text: None, self._parameters)
        self._ups: dict[int, torch.Event] = {}  # by parameter: the event after its copy up, which reads memory that the worker changes

    def start(self, earlier: syncopate.KeptTables | None) -> None:
        """As the worker's: with the weights that the devices have now, which get those of the job."""
        for parameter, host in zip(self._parameters, self._hosts, strict=True):
            host.copy_(parameter.detach())
        self._worker.start(earlier)
        self._give_all()

    def update(self, i: int, gradient: torch.Tensor, rate: float) -> None:
        """As the worker's, when the gradient has arrived. Returns at once; the parameter has no gradient then."""
        crossing = self._copies.down(i, gradient)
        self._copies.then(crossing, self._arrived, i, crossing, rate)
        self._parameters[i].grad = None

    def _arrived(self, i: int, crossing: Crossing, rate: float) -> None:
        crossing.release()
        self._worker.update(i, crossing.host, rate)

    def clock(self, rate: float) -> None:
        """As the worker's, when all gradients have arrived. Weights come up after what the devices have been given by now."""
        self._land()
        self._copies.follow()  # `land` does so only in a step that had gradients
        self._worker.clock(rate)

    def sync(self, i: int) -> None:
        """As the worker's; the current stream goes on when the device has the weights."""
        self._copies.land()
        if i in self._ups:
            self._ups.pop(i).synchronize()
        self._worker.sync(i)
        self._give(i)

    def finish(self) -> None:
        """As the worker's; the current stream goes on when the devices have all weights."""
        self._land()
        self._worker.finish()
        self._give_all()

    def _land(self) -> None:
        self._copies.land()
        for end in self._ups.values():
            end.synchronize()
        self._ups.clear()

    def _give(self, i: int) -> None:
        self._ups[i] = self._copies.up(Weights(i), self._parameters[i].detach(), self._hosts[i])

    def _give_all(self) -> None:
        self._copies.follow()
        for i in range(len(self._hosts)):
            self._give(i)

    def close(self) -> None:
        """End the thread of the copies, and the worker."""
        self._copies.close()
        self._worker.close()
