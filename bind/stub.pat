# What stubs say where the module itself cannot: attributes of errors, and the version.
_core.Error.rank:
    rank: int | None

_core.Error.peer:
    peer: int | None

_core.Error.operation:
    operation: str | None

_core.Error.tensor:
    tensor: str | None

_core.__prefix__:
    __version__: str
