#!/usr/bin/env python3
"""Allowed includes: the library's folders form layers, and each foreign library stays in its own room."""

import re
import sys
from pathlib import Path

from base.rooms import room_findings
from base.tree import CODE_FOLDERS, CPP, ROOT, Finding, cpp_files, files, includes, report

# Folder of src/ -> the folders whose private headers it may include. Data flows one way; `sync` is where all meet.
# A shelf with the files that are named like it ("server/consistency") is a layer of its own where it stands lower than its folder.
LAYERS = {
    "base": {"base"},
    "kernel": {"base", "kernel"},
    "transport": {"base", "transport"},
    "collective": {"base", "kernel", "transport", "collective"},
    "compress": {"base", "kernel", "compress"},
    "schedule": {"base", "schedule"},
    "network": {"base", "network"},
    "optim": {"base", "kernel", "collective", "optim"},
    "server": {"base", "kernel", "transport", "compress", "optim", "server", "server/consistency", "server/placement"},
    "input": {"base", "input"},
    "cache": {"base", "transport", "collective", "input", "cache"},
    "server/consistency": {"base", "server/consistency"},
    "server/placement": {"base", "server/placement"},
    # It runs the production server's tables (server/table), so that their protocol is implemented once.
    "simulate": {"base", "transport", "collective", "network", "schedule", "server", "server/consistency", "server/placement", "simulate"},
    # Laws of users' components: the shelves' own functions, and the simulator's events.
    "laws": {"base", "kernel", "compress", "schedule", "server", "server/consistency", "server/placement", "simulate", "laws"},
    "sync": {"base", "kernel", "transport", "collective", "compress", "network", "schedule", "optim", "server",
             "server/consistency", "server/placement", "input", "cache", "sync"},
    "foresight": {"base", "transport", "collective", "compress", "simulate", "sync", "foresight"},
}
# Public header -> the folder that implements it: only folders that may include that folder may include the header.
HOMES = {
    "group": "transport",
    "collective": "collective",
    "shared_work": "collective",
    "plan": "collective",
    "synchronizer": "sync",
    "combiner": "sync",
    "feedback": "compress",
    "shelves": "sync",
    "cluster": "collective",
    "predict": "simulate",
    "simulate": "simulate",
    "testing": "laws",
    "foresight": "foresight",
    "codec_loopback": "compress",
    "optimizer": "optim",
    "server": "server",
    "input": "input",
    "files": "input",
    "pipeline": "input",
    "cache": "cache",
    # The interfaces of components that users write.
    "codec": "compress",
    "codec_feedback": "compress",
    "policy": "schedule",
    "rule": "optim",
    "placement": "server/placement",
    "consistency": "server/consistency",
}
# Public headers that gather others, for users alone.
FOR_USERS = {"syncopate"}
# The part of include/ for this project's own programs: not for users, nor for the headers that users include.
TOOLING, TOOLING_READERS = "syncopate/tooling", ("src", "programs", "bind", "test", "bench")
# Trees that see the library through its front door only.
OUTSIDE = ("programs", "bind", "example")
# Files of another tree that a tree may include, and why.
SEAMS = {"programs": {"contender/"}}  # the method of measuring is one header, shared with the programs of the contenders
# Include of a foreign library -> the only places where it may stand.
FOREIGN = [
    (r"(?:torch|ATen|c10)/", ("programs/train/", "test/train/", "test/python/device/", "example/own_model.cpp"), "libtorch"),
    (r"(?:grpc|grpcpp|grpc\+\+)/", ("bench/contender/",), "gRPC"),
    (r"mpi\.h$", ("bench/contender/",), "MPI"),
    (r"(?:cuda|cublas|curand|cub/|thrust/)", ("src/device/", "src/kernel/cuda/", "test/kernel/"), "CUDA"),
    (r"nccl", ("src/device/",), "NCCL"),
    (r"gloo/", ("bench/contender/",), "Gloo"),
    (r"hwy/", ("src/kernel/", "test/kernel/"), "Highway"),
    (r"openssl/", ("src/base/", "src/transport/", "test/transport/"), "OpenSSL"),
    (r"(?:jpeglib|jerror|png)\.h$", ("src/input/picture/", "test/input/", "programs/syncopate/dataset/", "bench/input/"), "libjpeg and libpng"),
    (r"zlib\.h$", ("src/input/", "test/input/"), "zlib"),
    (r"CLI/", ("programs/", "bench/"), "CLI11"),
    (r"toml\+\+/", ("programs/",), "toml++"),
]

def layer_of(parts):
    """The layer of a path below src/: its folder, or the shelf in it that is a layer of its own."""
    inner = "/".join((parts[0], Path(parts[1]).stem)) if len(parts) > 1 else parts[0]
    return inner if inner in LAYERS else parts[0]


def foreign_finding(path, target):
    for pattern, places, library in FOREIGN:
        if re.match(pattern, target) and not str(path).startswith(places):
            return f"{library} may be included only in {' and '.join(places)}"
    return None


def public_finding(root, path, target):
    """`path` includes the public header `target` ("syncopate/x.hpp")."""
    if not (root / "include" / target).is_file():
        return f"there is no public header {target}"
    name = Path(target).stem
    tooling = Path("include") / TOOLING in path.parents or path.parts[0] in TOOLING_READERS
    if target.startswith(f"{TOOLING}/") and not tooling:
        return f"{TOOLING}/ is for {', '.join(TOOLING_READERS)} only"
    if path.parts[0] == "src":
        if name in FOR_USERS:
            return f"{target} is for users; include the header that is meant"
        home = HOMES.get(name, "base")
        layer = layer_of(path.parts[1:])
        if home not in LAYERS.get(layer, {home}):
            return f"{target} belongs to {home}/, which {layer}/ may not know"
    return None


def library_finding(root, path, target):
    """A file of src/ includes "target", which is not a public header."""
    layer = layer_of(path.parts[1:])
    if len(path.parts) < 3 or layer not in LAYERS:
        return f"every file of src/ lives in one of the folders {', '.join(LAYERS)}"
    other = layer_of(target.split("/"))
    if other in LAYERS:
        if other not in LAYERS[layer]:
            return f"{layer}/ may not include {other}/; it may include {', '.join(sorted(LAYERS[layer]))}"
        return None if (root / "src" / target).is_file() else f"there is no src/{target}"
    if (root / path.parent / target).is_file():
        return f'write the folder too: "{path.parent.relative_to("src")}/{target}"'
    return None


def outside_finding(root, path, target):
    """A file of programs, bind or example includes "target", which is not a public header."""
    tree = path.parts[0]
    if any(target.startswith(seam) for seam in SEAMS.get(tree, ())):
        return None
    if any((root / folder / target).is_file() for folder in path.parents):
        return None
    if (root / "src" / target).is_file():
        return f"{tree}/ knows the library by include/syncopate/ only"
    return None


def finding_for(root, path, quote, target):
    wrong = foreign_finding(path, target)
    if wrong or target.startswith("syncopate/"):
        return wrong or public_finding(root, path, target)
    if path.parts[0] == "include":
        if quote == '"' or "/" in target or target.endswith(".h"):
            return "public headers include the standard library and syncopate/ only"
    elif quote == '"' and path.parts[0] == "src":
        return library_finding(root, path, target)
    elif quote == '"' and path.parts[0] in OUTSIDE:
        return outside_finding(root, path, target)
    return None


def findings(root):
    for path in cpp_files(root, *CODE_FOLDERS):
        for line, quote, target in includes((root / path).read_text(errors="replace")):
            wrong = finding_for(root, path, quote, target)
            if wrong:
                yield Finding(str(path), line, wrong)
    for path in files(root, "src", suffixes=CPP):
        if len(path.parts) < 3 or path.parts[1] not in LAYERS:
            yield Finding(str(path), 1, f"every file of src/ lives in one of the folders {', '.join(LAYERS)}")
    yield from room_findings(root)


if __name__ == "__main__":
    sys.exit(report("layers", list(findings(ROOT))))
