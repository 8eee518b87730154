"""PictureDecoder: pixels of known pictures and of Pillow, random changes by (seed, epoch, index), and a data set of JPEG files."""

import io
import pickle
import struct
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch_job  # skips where there is no torch

import syncopate
from syncopate.command import PROGRAM
from syncopate.torch import CachedDataset, PictureDecoder

assert torch_job
PLAIN = {"mean": (0, 0, 0), "std": (1, 1, 1)}


def png(width, height):
    """A picture whose red grows to the right from 0 to 1, and green downwards; blue is 0.4."""
    rows = b"".join(b"\0" + b"".join(bytes([(2 * x + 1) * 255 // (2 * width), (2 * y + 1) * 255 // (2 * height), 102]) for x in range(width))
                    for y in range(height))

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def jpegs(tmp_path_factory):
    """A folder of 12 photographs in classes."""
    folder = tmp_path_factory.mktemp("set")
    subprocess.run([PROGRAM, "data", "draw", "--format", "folder", "--size", "60..90", "--train", "12", "--test", "1", "--seed", "1",
                    "--out", str(folder)], check=True, capture_output=True)
    return folder / "train"


def files(folder):
    return [path.read_bytes() for path in sorted(folder.rglob("*.jpeg"))]


def test_the_result_is_the_middle_of_the_picture():
    picture = PictureDecoder(32, **PLAIN)(png(80, 64))
    assert picture.dtype == torch.float32 and picture.shape == (3, 32, 32)
    place = (torch.arange(32) + 0.5) / 32 * 7 / 8  # of a square of 56 pixels
    torch.testing.assert_close(picture[0], (12 / 80 + place * 64 / 80).expand(32, 32), atol=0.01, rtol=0)
    torch.testing.assert_close(picture[1], (1 / 16 + place)[:, None].expand(32, 32), atol=0.01, rtol=0)
    torch.testing.assert_close(picture[2], torch.full((32, 32), 0.4), atol=0.001, rtol=0)


def test_colours_are_normalised_by_default_as_imagenets():
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    colours = PictureDecoder(8, **PLAIN)(png(20, 20))
    torch.testing.assert_close(PictureDecoder(8)(png(20, 20)), (colours - mean[:, None, None]) / std[:, None, None])


def test_pixels_are_pillows(jpegs):
    image = pytest.importorskip("PIL.Image")
    records = files(jpegs)
    assert len(records) == 12
    for record in records:
        whole = image.open(io.BytesIO(record)).convert("RGB")
        side = 7 / 8 * min(whole.size)
        left, top = (whole.width - side) / 2, (whole.height - side) / 2
        cut = whole.resize((40, 40), image.Resampling.BILINEAR, box=(left, top, left + side, top + side))
        theirs = torch.frombuffer(bytearray(cut.tobytes()), dtype=torch.uint8).view(40, 40, 3).permute(2, 0, 1) / 255
        ours = PictureDecoder(40, **PLAIN)(record)
        torch.testing.assert_close(ours[:, 1:-1, 1:-1], theirs[:, 1:-1, 1:-1], atol=1.5 / 255, rtol=0)
        torch.testing.assert_close(ours, theirs, atol=4 / 255, rtol=0)  # at its border Pillow also weighs pixels outside of the cut


def test_random_changes_depend_on_seed_epoch_and_index_alone():
    decode, record = PictureDecoder(16, augment=True), png(50, 40)
    keys = [{"seed": seed, "epoch": epoch, "index": index} for seed in (0, 1) for epoch in (0, 1) for index in range(10)]
    pictures = [decode(record, **key) for key in keys]
    assert len({picture.numpy().tobytes() for picture in pictures}) == len(keys)
    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(lambda key: pickle.loads(pickle.dumps(decode))(record, **key), keys))
        shared = list(threads.map(lambda key: decode(record, **key), keys))
    assert all(torch.equal(one, other) for found in (again, shared) for one, other in zip(pictures, found, strict=True))


def test_mirroring_can_be_left_out():
    def mirrored(**options):
        decode = PictureDecoder(16, augment=True, **options)
        return sum(bool(picture[0, 8, 0] > picture[0, 8, 15]) for picture in (decode(png(50, 40), index=index) for index in range(100)))
    assert 25 < mirrored() < 75 and mirrored(mirror=False) == 0


@pytest.mark.parametrize("size", [16, 48])
def test_decoded_forms_give_the_pictures_of_their_files(jpegs, size):
    decode = PictureDecoder(size, augment=True)
    for index, record in enumerate([png(50, 40), *files(jpegs)]):
        form = decode.decoded(record)
        assert (form == record) == (size == 16 and index > 0)  # a JPEG that is much larger stays as it is
        for epoch in range(3):
            assert torch.equal(decode(form, epoch=epoch, index=index), decode(record, epoch=epoch, index=index))


def test_a_data_set_keeps_decoded_pictures(jpegs):
    decode = PictureDecoder(48, augment=True)
    (group,) = syncopate.Group.threads(1)
    found = []
    for decoded_bytes in (0, 1 << 20):
        with CachedDataset(jpegs, decode, batch_size=3, memory_bytes=1 << 20, group=group, decoded=decode.decoded,
                           decoded_bytes=decoded_bytes) as data:
            found.append([pictures for _ in range(3) for pictures, _ in data])
            # Steps of epoch 1 are read ahead of the forms of their records; all steps of epoch 0 were taken before any of epoch 2 is read.
            assert data.counters()[2].decoded == (12 if decoded_bytes else 0)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_data_set_has_the_pictures_of_its_seed_and_epoch_on_any_number_of_ranks(on_ranks, jpegs, ranks):
    decode = PictureDecoder(16, augment=True)

    def body(group):
        with CachedDataset(jpegs, decode, batch_size=3, memory_bytes=1 << 20, seed=5, group=group) as data:
            read = [data.source.read(index) for index in range(len(data.source))]
            return [[picture for pictures, _ in data for picture in pictures] for _ in range(2)], read
    results = on_ranks(ranks, body)
    for epoch in range(2):
        found = sorted(picture.numpy().tobytes() for epochs, _ in results for picture in epochs[epoch])
        assert found == sorted(decode(record, seed=5, epoch=epoch, index=index).numpy().tobytes() for index, record in enumerate(results[0][1]))


def test_a_damaged_file_is_named_at_its_step(tmp_path, jpegs):
    record = files(jpegs)[0]
    (tmp_path / "whole.jpg").write_bytes(record)
    (tmp_path / "cut.jpg").write_bytes(record[:len(record) // 2])
    (group,) = syncopate.Group.threads(1)
    with CachedDataset(tmp_path, PictureDecoder(16), batch_size=2, group=group) as data, pytest.raises(syncopate.Corrupt, match="at byte") as raised:
        next(iter(data))
    assert "cut.jpg" in raised.value.__notes__[0]


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 8, "std": (1, 0, 1)}, {"size": 8, "mean": (float("nan"), 0, 0)}])
def test_what_gives_no_pictures_is_refused(options):
    with pytest.raises(syncopate.Misuse, match="allowed"):
        PictureDecoder(**options)


def test_what_is_no_picture_is_corrupt():
    with pytest.raises(syncopate.Corrupt, match="neither"):
        PictureDecoder(8)(b"text")
