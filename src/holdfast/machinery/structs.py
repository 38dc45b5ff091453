"""Named arrays and numbers that kernels take as one address.

numba passes a named tuple as all of its numbers, seven for each array, and writes code to take it
apart and to put it together again wherever a kernel calls another: of the solvers that was more
than half of all code. Of a `Struct` only the address is passed, and a field is read where it is
used.
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct
from array import array
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, extending, typing
from numba.core.datamodel import models
from numba.np import numpy_support

# what numba is made of: without types
_build: Any = cgutils
_extending: Any = extending
_models: Any = models
_numpy: Any = numpy_support
_types: Any = types
_typing: Any = typing

_WORD = ir.IntType(64)
# what fields are said to be that hold arrays
_DTYPES = {
    "Floats": np.dtype(np.float64),
    "Ints": np.dtype(np.int64),
    "Flags": np.dtype(np.int8),
}


@dataclass_transform(frozen_default=True, eq_default=False)
class Struct:
    """Base of classes whose fields are arrays, numbers, named tuples of these, and other structs.

    Python makes them, and they stay as they are; what is in the arrays may change. Kernels read
    the fields, and cannot make a struct. To kernels all arrays may be written, so that there is one
    version of a kernel for all: it must not write those that are not its own. Nobody counts who
    holds them: a kernel must never return one to Python.

    Attributes
    ----------
    address : int
        Where the words are that stand for the fields: numbers; of an array, where it is and its
        shape; of a struct, its address.

    Examples
    --------
    >>> import numpy as np
    >>> from holdfast.machinery.compile import kernel
    >>> class Line(Struct):
    ...     slope: np.ndarray
    ...     height: float
    >>> @kernel
    ... def value_at(line, x):
    ...     return line.slope[0] * x + line.height
    >>> value_at(Line(np.array([2.0]), 1.0), 3.0)
    7.0
    """

    address: int
    _numba_type_: StructType  # numba asks for it by this name
    _memory: array[int]
    _names: ClassVar[tuple[str, ...]]
    _dtypes: ClassVar[tuple[Any, ...]]  # of arrays of zeros

    def __init_subclass__(cls) -> None:
        said = cls.__annotations__
        cls._names, cls._dtypes = tuple(said), tuple(_DTYPES.get(kind) for kind in said.values())

    def __init__(self, *values: Any, **named: Any) -> None:
        values += tuple(named.pop(name) for name in self._names[len(values) :] if name in named)
        if named or len(values) != len(self._names):
            raise TypeError(f"{type(self).__name__} takes {', '.join(self._names)}")
        words: list[int] = []
        kinds: list[Any] = [type(self)]
        for name, value in zip(self._names, values, strict=True):
            more, kind = self._words(name, value)
            words += more
            kinds.append(kind)
        self._settle(values, words, kinds)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} of {type(self).__name__} stays as it is; see replaced()")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} of {type(self).__name__} stays")

    def __reduce__(self) -> tuple[Any, ...]:  # a copy has an address of its own
        return type(self), tuple(getattr(self, name) for name in self._names)

    @classmethod
    def zeros(cls, *shapes: Any, **named: Any) -> Self:
        """Return one with arrays of zeros, all in one piece: that takes a third of the time.

        Parameters
        ----------
        *shapes, **named
            For each field the shape of its array; or what it holds, if that is a struct.
        """
        shapes += tuple(named[name] for name in cls._names[len(shapes) :])
        plain = tuple(None if isinstance(shape, Struct) else shape for shape in shapes)
        size, places = _places(cls._dtypes, plain)
        block = np.zeros(size, dtype=np.int8)
        begin = block.__array_interface__["data"][0]
        values: list[Any] = []
        words: list[int] = []
        kinds: list[Any] = [cls]
        for shape, dtype, place in zip(shapes, cls._dtypes, places, strict=True):
            if isinstance(shape, Struct):
                values.append(shape)
                words.append(shape.address)
                kinds.append(shape._numba_type_)
            else:
                values.append(made := np.ndarray(shape, dtype, block, place))
                words += [begin + place, *made.shape]
                kinds.append((dtype.char, made.ndim))
        new = object.__new__(cls)
        new._settle(tuple(values), words, kinds)
        return new

    def _settle(self, values: tuple[Any, ...], words: list[int], kinds: list[Any]) -> None:
        memory = array("q", words)
        self.__dict__.update(zip(self._names, values, strict=True))
        self.__dict__.update(
            _memory=memory, address=memory.buffer_info()[0], _numba_type_=_type_of(tuple(kinds))
        )

    def _words(self, name: str, value: Any) -> tuple[list[int], Any]:
        """Return the words that stand for the value of a field, and what kind of value it is."""
        if isinstance(value, np.ndarray) and value.ndim:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned and value.dtype.isnative):
                raise ValueError(
                    f"{name} of {type(self).__name__} is not as kernels read it; pass it through "
                    "numpy.require(..., dtype, 'CA')"
                )
            place = value.__array_interface__["data"][0]
            return [place, *value.shape], (value.dtype.char, value.ndim)
        if isinstance(value, Struct):
            return [value.address], value._numba_type_
        if isinstance(value, tuple):
            parts = [self._words(name, part) for part in value]
            words = [word for more, _ in parts for word in more]
            return words, (type(value), *(kind for _, kind in parts))
        if isinstance(value, float):
            return [struct.unpack("=q", struct.pack("=d", value))[0]], float
        if isinstance(value, (int, np.integer)):
            return [int(value)], int
        raise TypeError(
            f"{name} of {type(self).__name__} is {type(value).__name__}, which kernels do not read"
        )

    def replaced(self, **fields: Any) -> Self:
        """Return the same with other values of some fields, of the same types."""
        if unknown := fields.keys() - set(self._names):
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        known, memory = self._numba_type_, self._memory[:]
        for name, value in fields.items():
            words, kind = self._words(name, value)
            if _field_type(kind) != known.fields[name]:
                raise TypeError(f"{name} of {type(self).__name__} is of another type")
            memory[known.places[name] : known.places[name] + len(words)] = array("q", words)
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **fields)
        new.__dict__.update(_memory=memory, address=memory.buffer_info()[0])
        return new


@functools.lru_cache(1024)
def _places(dtypes: tuple[Any, ...], shapes: tuple[Any, ...]) -> tuple[int, list[int]]:
    """Return how many bytes arrays of such shapes take, and where each begins; None takes none."""
    places, size = [], 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        places.append(size)
        if shape is not None:
            count = math.prod(shape) if isinstance(shape, tuple) else shape
            size += -(-count * dtype.itemsize // 8) * 8
    return size, places


class StructType(_types.Type):  # type: ignore[misc]
    """The type of a struct whose fields have some types."""

    def __init__(self, kind: type[Struct], fields: tuple[Any, ...]) -> None:
        self.instance_class, self.fields = kind, dict(zip(kind._names, fields, strict=True))
        self.places, place = {}, 0
        for name, field in self.fields.items():
            self.places[name] = place
            place += _count(field)
        # short, since it is part of the name of every function that takes one
        told = hashlib.sha256(repr((kind.__module__, self.fields)).encode()).hexdigest()
        super().__init__(f"{kind.__qualname__}.{told[:12]}")


_known: dict[tuple[Any, ...], StructType] = {}


def _type_of(kinds: tuple[Any, ...]) -> StructType:
    """Return the type of structs of a class with such fields."""
    if kinds not in _known:
        _known[kinds] = StructType(kinds[0], tuple(_field_type(kind) for kind in kinds[1:]))
    return _known[kinds]


@functools.cache
def _field_type(kind: Any) -> Any:
    if not isinstance(kind, tuple):
        return {float: _types.float64, int: _types.int64}.get(kind, kind)
    if isinstance(kind[0], str):
        return _types.Array(_numpy.from_dtype(np.dtype(kind[0])), kind[1], "C")
    return _types.NamedTuple([_field_type(part) for part in kind[1:]], kind[0])


def _count(field: Any) -> int:
    """Return how many words a field of a type takes."""
    if isinstance(field, _types.NamedTuple):
        return sum(map(_count, field.types))
    return 1 + (field.ndim if isinstance(field, _types.Array) else 0)


@_extending.register_model(StructType)
class _StructModel(_models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


def _unbox_struct(kind: Any, value: Any, c: Any) -> Any:
    held = c.pyapi.object_getattr_string(value, "address")
    address = c.pyapi.long_as_longlong(held)
    c.pyapi.decref(held)
    pointer = c.builder.inttoptr(address, _WORD.as_pointer())
    return _extending.NativeValue(
        pointer, is_error=_build.is_not_null(c.builder, c.pyapi.err_occurred())
    )


@_extending.infer_getattr
class _StructFields(_typing.templates.AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return kind.fields.get(name)


def _lower_field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    return _read_field(context, builder, value, kind.places[name], kind.fields[name])


def _read_field(context: Any, builder: Any, pointer: Any, place: int, field: Any) -> Any:
    if isinstance(field, _types.Array):
        return _read_array(context, builder, pointer, place, field)
    if not isinstance(field, _types.NamedTuple):
        return _read(builder, pointer, place, context.get_value_type(field))
    parts = []
    for part in field.types:
        parts.append(_read_field(context, builder, pointer, place, part))
        place += _count(part)
    return context.make_tuple(builder, field, parts)


def _read(builder: Any, pointer: Any, place: int, kind: Any) -> Any:
    """Read a word; it never changes, so that LLVM may read it early, and once."""
    word = builder.gep(pointer, [ir.Constant(ir.IntType(32), place)], inbounds=True)
    read = builder.load(builder.bitcast(word, kind.as_pointer()))
    read.set_metadata("invariant.load", builder.module.add_metadata([]))
    return read


def _read_array(context: Any, builder: Any, pointer: Any, place: int, field: Any) -> Any:
    """Return a contiguous array, which nobody counts, from where it is and its shape."""
    model, kind = context.data_model_manager[field], context.get_value_type(field)
    item = context.get_abi_sizeof(context.get_data_type(field.dtype))
    data_kind = kind.elements[model.get_field_position("data")]
    shape = [_read(builder, pointer, place + 1 + k, _WORD) for k in range(field.ndim)]
    strides = [ir.Constant(_WORD, item)]
    count = shape[-1]
    for length in shape[-2::-1]:
        strides.insert(0, builder.mul(count, strides[-1]))
        count = builder.mul(count, length)
    made = ir.Constant(kind, None)

    def put(name: str, number: Any, *within: int) -> None:
        nonlocal made
        made = builder.insert_value(made, number, [model.get_field_position(name), *within])

    put("data", _read(builder, pointer, place, data_kind))
    put("nitems", count)
    put("itemsize", strides[-1])
    for k in range(field.ndim):
        put("shape", shape[k], k)
        put("strides", strides[k], k)
    return made


_extending.unbox(StructType)(_unbox_struct)
_extending.lower_getattr_generic(StructType)(_lower_field)
