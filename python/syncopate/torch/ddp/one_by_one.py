"""Gradients that arrive one by one, as DDP's reducer in Python passes them (`optimize_ddp = "python_reducer"`), as buckets of one gradient."""

import syncopate


class OneByOne:
    """Makes a bucket of each gradient of a step; the last one of the step ends it."""

    def __init__(self, parameters):
        self._all = frozenset(parameters)
        self._missing = set(self._all)

    def bucket(self, gradient, parameter):
        """The bucket of this gradient. Raises Misuse if the step before lacks gradients."""
        if parameter not in self._missing:
            raise syncopate.Misuse(f"a second gradient of a parameter of shape {tuple(parameter.shape)}, while {len(self._missing)} of "
                                   f"{len(self._all)} parameters have none in this step; allowed with optimize_ddp='python_reducer': passes "
                                   "that reach all trained parameters; otherwise optimize_ddp=True")
        self._missing.remove(parameter)
        is_last = not self._missing
        if is_last:
            self._missing = set(self._all)
        return _Bucket(gradient, parameter, is_last)


class _Bucket:
    """As torch's GradBucket."""

    def __init__(self, gradient, parameter, is_last):
        self._gradient, self._parameter, self._is_last = gradient, parameter, is_last

    def index(self):
        """For pinned memory: of each parameter its own."""
        return self._parameter

    def buffer(self):
        """The memory that gets the average."""
        return self._gradient

    def gradients(self):
        """This one."""
        return [self._gradient]

    def parameters(self):
        """That of the gradient."""
        return [self._parameter]

    def is_last(self):
        """Whether it ends the step."""
        return self._is_last
