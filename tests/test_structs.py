"""Structs: what kernels read of them is what Python has put there."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
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
    with pytest.raises(TypeError, match="Outer has no colour"):
        example().replaced(colour=1)


@pytest.mark.parametrize(
    "value", [np.float32(0.7), Fraction(7, 10), Decimal("0.7"), "7", None, np.array(0.7)]
)
def test_numbers_that_kernels_do_not_read_are_refused(value):
    with pytest.raises(TypeError, match=r"level of Outer is .* which kernels do not read"):
        example().replaced(level=value)


ODD = np.frombuffer(bytes(17), dtype=np.float64, offset=1, count=2)  # at an odd address


@pytest.mark.parametrize(
    "values", [np.ones((2, 2)).T[:1], np.ones(4)[::2], np.ones(2, dtype=">f8"), ODD]
)
def test_arrays_that_kernels_would_misread_are_refused(values):
    with pytest.raises(ValueError, match=r"numbers of Inner is not as kernels read it"):
        Inner(values, np.arange(2), np.zeros(5, dtype=np.int8))


@pytest.mark.parametrize("given", [(), (np.ones(1),), (np.ones(1),) * 4])
def test_all_fields_must_be_given(given):
    with pytest.raises(TypeError, match="Inner takes numbers, places, flags"):
        Inner(*given)


@pytest.mark.parametrize("more", ["colour", "numbers"])
def test_names_that_are_left_over_are_refused(more):
    inner = example().inner
    with pytest.raises(TypeError, match="Inner takes numbers, places, flags"):
        Inner(inner.numbers, inner.places, inner.flags, **{more: np.ones(1)})


def test_names_are_taken_too():
    inner = example().inner
    again = Inner(inner.numbers, flags=inner.flags, places=inner.places)
    assert again.flags is inner.flags
    assert again.places is inner.places


def test_fields_stay_as_they_are():
    with pytest.raises(AttributeError, match="level of Outer stays as it is"):
        example().level = 2.0
    with pytest.raises(AttributeError, match="table of Outer stays"):
        del example().table


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
    assert inner.replaced(numbers=frozen)._numba_type_ is inner._numba_type_
    assert Inner(frozen, inner.places, inner.flags)._numba_type_ is inner._numba_type_


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
    assert inner._numba_type_ is example().inner._numba_type_
    assert_read(example().replaced(inner=inner))


class Uneven(Struct):
    """Flags before numbers."""

    flags: Flags
    numbers: Floats
    more: Flags
    places: Ints


def test_zeros_lie_where_their_type_wants_them():
    uneven = Uneven.zeros(3, 2, more=5, places=(1, 2))
    assert uneven.numbers.flags.aligned
    assert uneven.places.flags.aligned
    assert [each.shape for each in (uneven.flags, uneven.more, uneven.places)] == [
        (3,),
        (5,),
        (1, 2),
    ]
    uneven.flags[:], uneven.more[:], uneven.numbers[:], uneven.places[:] = 1, 2, 3.0, 4
    again = Uneven(uneven.flags, uneven.numbers, uneven.more, uneven.places)
    assert again._numba_type_ is uneven._numba_type_
    assert again._memory == uneven._memory
    assert (uneven.flags.sum(), uneven.more.sum(), uneven.numbers.sum()) == (3, 10, 6.0)


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
    old = example()
    new, wanted = copied(old), held(example())
    assert new.address != old.address
    del old
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
    code = "from test_structs import example; print(example()._numba_type_.name)"
    paths = [str(Path(__file__).parent), str(Path(holdfast.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert said.stdout.strip() == example()._numba_type_.name
