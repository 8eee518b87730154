#!/usr/bin/env python3
"""Pictures that Python decodes in a second: PictureDecoder, and Pillow with NumPy if it is installed, in turns.

    syncopate data draw --format folder --size 224 --train 150 --out SET
    python bench/pictures.py SET/train            # PYTHONPATH=build/release/python in a build tree

Each round decodes all files once from memory, on one thread and on --threads. Both contenders cut the middle of a picture, scale
it to --size and normalise it to a tensor [3, size, size].
"""

import argparse
import io
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import torch

import syncopate.torch

MEAN, STD = (numpy.float32(three) for three in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


def pillow(image, size):
    """The steps of torchvision's usual transforms."""
    def decode(record):
        whole = image.open(io.BytesIO(record)).convert("RGB")
        side = 7 / 8 * min(whole.size)
        left, top = (whole.width - side) / 2, (whole.height - side) / 2
        cut = whole.resize((size, size), image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
        colours = (numpy.asarray(cut, numpy.float32) / 255 - MEAN) / STD
        return torch.from_numpy(numpy.ascontiguousarray(colours.transpose(2, 0, 1)))
    return decode


def rate(decode, records, threads):
    """Pictures per second of one round."""
    begin = time.perf_counter()
    list(threads.map(decode, records))
    return len(records) / (time.perf_counter() - begin)


def main():
    """Print the median of each contender and number of threads."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path, help="its JPEG and PNG files are decoded")
    arguments.add_argument("--size", type=int, default=224, help="pixels of a result, each way")
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--rounds", type=int, default=9)
    given = arguments.parse_args()
    records = [path.read_bytes() for path in sorted(given.folder.rglob("*.*")) if path.is_file()]
    contenders = {"PictureDecoder": syncopate.torch.PictureDecoder(given.size)}
    try:
        import PIL.Image
        contenders[f"Pillow {PIL.__version__}"] = pillow(PIL.Image, given.size)
    except ImportError:
        print("Pillow is not installed")
    rates = {}
    for count in (1, given.threads):
        with ThreadPoolExecutor(count) as threads:
            for _ in range(given.rounds):
                for name, decode in contenders.items():
                    rates.setdefault((name, count), []).append(rate(decode, records, threads))
    for (name, count), found in rates.items():
        print(f"{name}, {count} thread{'s' * (count > 1)}: {statistics.median(found):.0f} pictures/s ({min(found):.0f}..{max(found):.0f})")


if __name__ == "__main__":
    main()
