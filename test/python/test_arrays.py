"""Arrays of any owner are used in place; unfit arrays are rejected by name, and ranks stay in step."""

import array

import numpy
import pytest
from conftest import outcomes

import syncopate

DTYPES = [numpy.float32, numpy.float64, numpy.float16, numpy.int32, numpy.int64, numpy.uint8]


def alone():
    return syncopate.Group.threads(1)[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_reduced_in_place(on_ranks, dtype):
    def body(group):
        data = numpy.arange(7, dtype=dtype) + dtype(group.rank)
        group.allreduce(data)
        return data
    for result in on_ranks(3, body):
        numpy.testing.assert_array_equal(result, 3 * numpy.arange(7, dtype=dtype) + dtype(3))
        assert result.dtype == dtype


def test_every_shape_is_a_flat_vector(on_ranks):
    def body(group):
        data = numpy.full((2, 3, 4), group.rank + 1.0)
        group.allreduce(data)
        scalar, nothing = numpy.array(group.rank + 1.0), numpy.zeros((0, 4))
        group.allreduce(scalar)
        group.allreduce(nothing)
        return data, scalar
    for data, scalar in on_ranks(2, body):
        assert (data == 3).all() and data.shape == (2, 3, 4) and scalar == 3


@pytest.mark.parametrize("make", [lambda: array.array("f", [1, 2]), lambda: bytearray([1, 2]),
                                  lambda: memoryview(bytearray([1, 2]))])
def test_the_buffer_protocol_is_enough(on_ranks, make):
    def body(group):
        data = make()
        group.allreduce(data)
        return list(data)
    assert on_ranks(2, body) == [[2, 4], [2, 4]]


def test_words_of_16_bits_are_taken_as_bfloat16(on_ranks):
    def body(group):
        words = (numpy.full(3, 1.5, numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
        group.allreduce(words, dtype="bf16")
        return (words.astype(numpy.uint32) << 16).view(numpy.float32)
    for result in on_ranks(2, body):
        numpy.testing.assert_array_equal(result, [3, 3, 3])


class OnDevice:
    """An array that claims to be in the memory of a GPU."""

    def __init__(self):
        self.host = numpy.zeros(3, numpy.float32)

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        import ctypes  # the tensor of the host's array, with another device in it
        capsule = self.host.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = 2
        return capsule


def read_only():
    data = numpy.zeros(4, numpy.float32)
    data.flags.writeable = False
    return data


@pytest.mark.parametrize(("make", "says"), [
    (lambda: numpy.zeros((4, 4), numpy.float32)[:, ::2], "not contiguous"),
    (lambda: numpy.zeros((4, 3), numpy.float32).T, "not contiguous"),
    (read_only, "read-only"),
    (lambda: b"1234", "read-only"),
    (lambda: numpy.zeros(3, numpy.complex64), "complex64; allowed: f32"),
    (lambda: numpy.zeros(3, bool), "bool8; allowed: f32"),
    (lambda: [1.0, 2.0], "is not an array"),
    (OnDevice, "memory of a device"),
])
def test_what_cannot_be_used_in_place_is_refused_by_name(make, says):
    with pytest.raises(syncopate.Misuse, match=says):
        alone().allreduce(make())


def test_another_type_must_have_the_same_width():
    with pytest.raises(syncopate.Misuse, match="bf16: that has 16 bits"):
        alone().allreduce(numpy.zeros(3, numpy.float32), dtype="bf16")
    with pytest.raises(syncopate.Misuse, match="allowed: f32"):
        alone().allreduce(numpy.zeros(3, numpy.float32), dtype="float")


def test_a_group_goes_on_where_every_rank_is_refused(on_ranks):
    def body(group):
        with pytest.raises(syncopate.Misuse):
            group.allreduce([1.0])
        data = numpy.ones(3)
        group.allreduce(data)
        return data[0]
    assert on_ranks(2, body) == [2, 2]


def test_ranks_that_were_not_refused_learn_the_reason():
    groups = syncopate.Group.threads(2, timeout_s=20)

    def body(group):
        if group.rank == 1:
            with pytest.raises(syncopate.Misuse):
                group.allreduce("text")
        group.allreduce(numpy.ones(3))

    results = outcomes(groups, body)
    assert isinstance(results[0], syncopate.Mismatch)
    assert "is not an array" in str(results[0])


def test_memory_of_the_group_outlives_it():
    group = alone()
    data = numpy.from_dlpack(group.allocate((3, 5), "f64"))
    assert data.shape == (3, 5) and data.dtype == numpy.float64 and not data.any()
    group.allreduce(data)
    group.close()
    del group
    data += 1
    assert data.sum() == 15


def test_memory_of_the_group_refuses_what_is_no_shape():
    with pytest.raises(syncopate.Misuse, match="allowed: f32"):
        alone().allocate(3, "float")
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        alone().allocate((2, -1))
