"""The parameter server's classes and functions, which need gRPC: they are loaded when the first of them is used."""

import importlib

NAMES = ("JobAccess", "KeptTables", "Server", "ServerStatus", "TableWorker", "WorkerStatistics", "access_from_environment",
         "make_certificates", "status_of")


def load(name):
    """That class or function. Raises ImportError that names what is missing."""
    try:
        module = importlib.import_module("syncopate._server")
    except ModuleNotFoundError as missing:
        raise ImportError(f"syncopate.{name} needs gRPC, without which this package was built: install libgrpc++-dev and pkg-config "
                          "(scripts/install), then build the package again") from missing
    except ImportError as missing:
        raise ImportError(f"syncopate.{name} needs gRPC's libraries, and one of them cannot be loaded: {missing}; install "
                          "libgrpc++-dev (scripts/install)") from missing
    for one in vars(module).values():
        if isinstance(one, type):
            one.__module__ = "syncopate"  # where users find it, and what messages show
    return getattr(module, name)
