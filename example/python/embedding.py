"""Factors of users and items from clicks, on a parameter server: `syncopate run -n 2 --servers 2 -- python embedding.py`."""

import torch

import syncopate.torch

STEPS, BATCH, WIDTH = 200, 512, 16


def clicks(generator):
    """Users, items, and whether each user clicks on the item: if both have the same taste, a bit of a hash of their ids."""
    users, items = (torch.randint(-500, 500, (BATCH,), generator=generator) * 2**40 for _ in range(2))  # any 64 bits
    tastes = [(ids >> 40) * 2654435761 >> 7 & 1 for ids in (users, items)]
    return users, items, (tastes[0] == tastes[1]).float()


def main():
    """Train, and print worker 0's last losses."""
    worker = syncopate.TableWorker.connect(consistency="tap")
    users, items = (syncopate.torch.Embedding(worker, name, WIDTH, lr=0.1, rule="adagrad", scale=0.3) for name in ("users", "items"))
    worker.start()
    generator, losses = torch.Generator().manual_seed(worker.worker), []
    for _ in range(STEPS):
        who, what, clicked = clicks(generator)
        likes = (users(who) * items(what)).sum(1)  # the rows of the batch arrive
        loss = torch.nn.functional.binary_cross_entropy_with_logits(likes, clicked, reduction="sum")
        loss.backward()  # their gradients leave
        losses.append(loss.item() / BATCH)
    worker.finish()
    if worker.worker == 0:
        print(f"{worker.workers} workers: loss {sum(losses[-20:]) / 20:.3f} after {STEPS} steps, 0.693 by guessing")


if __name__ == "__main__":
    main()
