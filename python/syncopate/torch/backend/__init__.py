"""The backend "syncopate" of torch.distributed: collectives, point-to-point messages, and calls with tensors of accelerators."""
