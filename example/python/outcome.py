"""The line that an example prints at the end of a rank: losses, a digest of the weights, and the share of the gradients that was sent."""

import hashlib


def line(rank, losses, net, sent_bytes=None):
    """`line_of` for a net of torch; FSDP's ranks call it together."""
    whole = [parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter for parameter in net.parameters()]
    return line_of(rank, losses, [parameter.detach().cpu().numpy().tobytes() for parameter in whole], sent_bytes)


def line_of(rank, losses, weights, sent_bytes=None):
    """The line of this rank. `sent_bytes` is of all steps, in each of which a rank of two sends each gradient once if it is not coded."""
    digest = hashlib.sha256(b"".join(weights)).hexdigest()[:16]
    share = "" if sent_bytes is None else f", sent {sent_bytes / (len(losses) * sum(map(len, weights))):.3f} of the gradients"
    return f"rank {rank}: {len(losses)} steps, loss {losses[0]:.3f} to {losses[-1]:.3f}, weights {digest}{share}"
