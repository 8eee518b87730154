"""Functions that torch.compile leaves as they are: they wait for other ranks, and start threads, each time that they are called."""

import torch

# torch.compiler.disable would import the compiler, which takes seconds, when this package is imported; this does it at the first call.
untraced = getattr(torch, "_disable_dynamo", lambda call: call)  # since torch 2.1
