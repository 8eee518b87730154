"""PictureDecoder: JPEG and PNG files become normalised tensors, by the picture pipeline of `syncopate train`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from syncopate import _core


class PictureDecoder:
    """Decodes the bytes of a JPEG or PNG file to float32 [3, size, size], red first: `decode` of a CachedDataset.

    Rotated upright by Exif; grey and CMYK become colours. Without `augment` the result is the middle square of 7/8 of the shorter
    side. With it, a random rectangle of 8 % to 100 % of the area is scaled to the square, and with `mirror` half of the results
    are mirrored; these changes depend on seed, epoch and index alone, so they are equal on every rank, and equal to those of
    `syncopate train --augment`. Colours from 0 to 1 become (colour - mean) / std; by default the numbers are ImageNet's.

    CachedDataset takes the files with these `extensions` as records, and `decoded` as its part that draws nothing.

    Decoding runs without the interpreter's lock, on any number of threads. A decoder can be pickled. Raises Misuse for a size
    below 1 and a std that is not above 0.
    """

    extensions: tuple[str, ...] = _core.PICTURE_EXTENSIONS

    def __init__(self, size: int, *, augment: bool = False, mirror: bool = True, mean: Sequence[float] = (0.485, 0.456, 0.406),
                 std: Sequence[float] = (0.229, 0.224, 0.225)) -> None:
        self._options: dict[str, Any] = {"size": size, "augment": augment, "mirror": mirror, "mean": tuple(mean), "std": tuple(std)}
        self._decoder = _core.PictureDecoder(**self._options)

    def __call__(self, record: bytes, *, seed: int = 0, epoch: int = 0, index: int = 0) -> torch.Tensor:
        """The picture. Raises Corrupt for a damaged file, with the position of the damage."""
        picture: torch.Tensor = torch.from_dlpack(self._decoder.decode(record, seed=seed, epoch=epoch, sample=index))
        return picture

    def decoded(self, record: bytes) -> bytes:
        """All pixels of the file as bytes, which are decoded to the same pictures in less time; the file if it has no such form."""
        return self._decoder.decoded(record)

    decode_at = __call__  # CachedDataset calls it with its seed, the epoch and the record's index

    def __repr__(self) -> str:
        return f"PictureDecoder({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"

    def __reduce__(self) -> tuple[functools.partial[PictureDecoder], tuple[()]]:
        return functools.partial(PictureDecoder, **self._options), ()
