"""Structs: what kernels read of them is what Python has put there."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import holdfast
from holdfast.machinery.numbers import Flags, Floats, Ints
from holdfast.machinery.structs import Struct
from holdfast.machinery.whole import Kernel


class Pair(NamedTuple):
    """A named tuple with an array in it."""

    values: Floats
    weight: float


class Inner(Struct):
    """Arrays of all types."""

    numbers: Floats
    places: Ints
    flags: Flags


class Outer(Struct):
    """One of each kind of field."""

    table: Floats
    count: int
    inner: Inner
    pair: Pair
    level: float
    cube: Floats


def as_kernel(function):
    """A kernel that is kept nowhere."""
    return Kernel(function, targetoptions={"nopython": True, "nogil": True, "_nrt": False})


@as_kernel
def read(outer, table, numbers, places, flags, values, cube, rest):
    """Copy all that a struct holds."""
    for i in range(outer.table.shape[0]):
        for j in range(outer.table.shape[1]):
            table[i, j] = outer.table[i][j]
    inner = outer.inner
    for k in range(inner.numbers.size):
        numbers[k] = inner.numbers[k]
    for k in range(inner.places.size):
        places[k] = inner.places[k]
    for k in range(inner.flags.size):
        flags[k] = inner.flags[k]
    for k in range(outer.pair.values.size):
        values[k] = outer.pair.values[k]
    for i in range(outer.cube.shape[0]):
        for j in range(outer.cube.shape[1]):
            for k in range(outer.cube.shape[2]):
                cube[i, j, k] = outer.cube[i, j, k]
    rest[0], rest[1], rest[2] = outer.count, outer.pair.weight, outer.level


def read_back(outer: Outer) -> list[np.ndarray]:
    """Return what a kernel reads, array by array."""
    kept = (outer.table, outer.inner.numbers, outer.inner.places, outer.inner.flags)
    out = [np.full_like(each, 99) for each in (*kept, outer.pair.values, outer.cube)]
    rest = np.full(3, 99.0)
    read(outer, *out, rest)
    return [*out, rest]


def held(outer: Outer) -> list[np.ndarray]:
    """Return the same, as Python reads it."""
    arrays = [outer.table, outer.inner.numbers, outer.inner.places, outer.inner.flags]
    rest = np.array([outer.count, outer.pair.weight, outer.level])
    return [*arrays, outer.pair.values, outer.cube, rest]


def assert_read(outer: Outer) -> None:
    for mine, theirs in zip(held(outer), read_back(outer), strict=True):
        assert mine.tobytes() == theirs.tobytes()


def floats(dims: int) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=dims, max_dims=dims, min_side=0, max_side=4)
    return hnp.arrays(np.float64, shapes)


def whole(dtype: type) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(dtype, st.integers(0, 5))


inners = st.builds(Inner, floats(1), whole(np.int64), whole(np.int8))
outers = st.builds(
    Outer,
    floats(2),
    st.integers(-(2**53), 2**53),
    inners,
    st.builds(Pair, floats(1), st.floats()),
    st.floats(),
    floats(3),
)


@settings(max_examples=200, deadline=None)
@given(outers)
def test_kernels_read_what_python_put_there(outer):
    assert_read(outer)
    assert len(read.overloads) == 1  # whatever the shapes


@settings(max_examples=50, deadline=None)
@given(outers, floats(2), st.floats(), inners)
def test_some_fields_are_replaced(outer, table, level, inner):
    before = [each.copy() for each in held(outer)]
    new = outer.replaced(table=table, level=level, inner=inner)
    assert_read(new)
    assert new.table is table
    assert new.inner is inner
    assert new.cube is outer.cube
    for mine, old in zip(held(outer), before, strict=True):
        assert mine.tobytes() == old.tobytes()
    assert_read(outer)


def example() -> Outer:
    inner = Inner(np.arange(3.0), np.arange(2), np.zeros(5, dtype=np.int8))
    return Outer(np.eye(2), -7, inner, Pair(np.ones(4), 0.5), math.pi, np.zeros((1, 2, 3)))


def test_other_types_of_fields_are_refused():
    with pytest.raises(TypeError, match="table of Outer is of another type"):
        example().replaced(table=np.ones(2))
    with pytest.raises(TypeError, match="count of Outer is of another type"):
        example().replaced(count=1.0)
    with pytest.raises(KeyError, match="colour"):
        example().replaced(colour=1)


@pytest.mark.parametrize(
    "values", [np.ones((2, 2)).T[:1], np.ones(4)[::2], np.ones(2, dtype=">f8")]
)
def test_arrays_that_kernels_would_misread_are_refused(values):
    with pytest.raises(ValueError, match=r"numbers of Inner is not as kernels read it"):
        Inner(values, np.arange(2), np.zeros(5, dtype=np.int8))


@pytest.mark.parametrize("given", [(), (np.ones(1),), (np.ones(1),) * 4])
def test_all_fields_must_be_given(given):
    with pytest.raises((TypeError, ValueError, KeyError)):
        Inner(*given)


def test_names_are_taken_too():
    inner = example().inner
    again = Inner(inner.numbers, flags=inner.flags, places=inner.places)
    assert again.flags is inner.flags
    assert again.places is inner.places


def test_fields_stay_as_they_are():
    with pytest.raises(AttributeError, match="level of Outer stays as it is"):
        example().level = 2.0


@as_kernel
def write(inner):
    inner.numbers[0], inner.places[1], inner.flags[2] = 5.0, 6, 7


def test_what_kernels_write_is_seen():
    inner = example().inner
    write(inner)
    assert (inner.numbers[0], inner.places[1], inner.flags[2]) == (5.0, 6, 7)


def test_arrays_that_may_not_be_written_are_of_the_same_type():
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    inner = example().inner
    assert inner.replaced(numbers=frozen).numba_type is inner.numba_type
    assert Inner(frozen, inner.places, inner.flags).numba_type is inner.numba_type


def test_zeros_are_apart():
    inner = Inner.zeros(3, 2, 5)
    assert [each.dtype for each in (inner.numbers, inner.places, inner.flags)] == [
        np.float64,
        np.int64,
        np.int8,
    ]
    for k, each in enumerate((inner.numbers, inner.places, inner.flags)):
        assert not each.any()
        each[:] = k + 1
    assert inner.numbers.tolist() == [1, 1, 1]
    assert inner.places.tolist() == [2, 2]
    assert inner.flags.tolist() == [3] * 5
    assert inner.numba_type is example().inner.numba_type
    assert_read(example().replaced(inner=inner))


class Nest(Struct):
    """Zeros around another struct."""

    table: Floats
    inner: Inner
    flags: Flags


@as_kernel
def corner(nest):
    return nest.table[1, 2], nest.inner.numbers[0], nest.flags[3]


def test_zeros_hold_other_structs():
    nest = Nest.zeros((2, 3), example().inner.replaced(numbers=np.array([4.0])), 4)
    nest.table[1, 2], nest.flags[3] = 8.0, 9
    assert corner(nest) == (8.0, 4.0, 9)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_copies_have_an_address_of_their_own(copied):
    new, wanted = copied(example()), held(example())
    gc.collect()
    rubbish = [np.full(9, -1.0) for _ in range(100)]
    for mine, theirs in zip(wanted, read_back(new), strict=True):
        assert mine.tobytes() == theirs.tobytes()
    assert len(rubbish) == 100


def test_a_struct_outlives_the_names_of_its_parts():
    outer = example().replaced(inner=Inner.zeros(3, 2, 5))
    nests = [Nest.zeros((2, 3), Inner.zeros(1, 1, 1), 4) for _ in range(50)]
    gc.collect()
    rubbish = [np.full(9, -1.0) for _ in range(1000)]
    assert_read(outer)
    assert all(corner(nest) == (0.0, 0.0, 0) for nest in nests)
    assert len(rubbish) == 1000


def test_unknown_fields_are_named():
    @as_kernel
    def wrong(inner):
        return inner.colour

    with pytest.raises(numba.TypingError, match="colour"):
        wrong(example().inner)


def test_types_have_the_same_name_in_every_process():
    code = "from test_structs import example; print(example().numba_type.name)"
    paths = [str(Path(__file__).parent), str(Path(holdfast.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert said.stdout.strip() == example().numba_type.name
