"""Runs an example whose HookState is a WithinHostState, for which two neighbouring ranks are a host: within_hosts.py PROGRAM..."""

import runpy
import sys
from pathlib import Path

import torch.distributed as dist

import syncopate.torch

sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).parent)
syncopate.torch.HookState = lambda net, **options: syncopate.torch.WithinHostState(dist.new_subgroups(2)[0], net, **options)
runpy.run_path(sys.argv[0], run_name="__main__")
