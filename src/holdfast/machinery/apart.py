"""Kernels that others call by their address: compiled apart, in a process of their own.

numba compiles one function at a time. A solver that is cut in two is compiled by two processes at
once: one kernel of it, with all that it calls, goes to a process that keeps the machine code on
disk and ends; meanwhile this one compiles the kernels that call it. These know its address alone.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import config, int64, types
from numba import typeof as type_of
from numba.core import cgutils, extending
from numba.core.errors import TypingError

from holdfast.machinery.compile import CACHE_DIRECTORY, PACKAGE
from holdfast.machinery.meanwhile import awaited, meanwhile
from holdfast.machinery.threads import thread_count

# what numba is made of: without types
_build: Any = cgutils
_config: Any = config
_extending: Any = extending
_types: Any = types
_type_of: Any = type_of

_PACKED = (int64,)
_PATIENCE = 120.0  # seconds: whoever is not done by then never will be
_HELPER = "import sys; from holdfast.machinery.apart import compile_named; compile_named(sys.argv)"


class Intrinsic(_extending._Intrinsic):  # type: ignore[misc]
    """A function that is LLVM's language where it is compiled, and Python where it is not."""

    def __init__(self, name: str, defn: Any, in_python: Callable[..., Any] | None = None) -> None:
        super().__init__(name, defn)
        self._in_python = in_python

    def __call__(self, *args: Any) -> Any:
        """Call it from kernels that run as Python."""
        return super().__call__(*args) if self._in_python is None else self._in_python(*args)


def intrinsic(in_python: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Make an `Intrinsic`; where nothing is compiled, the Python function is all there is."""

    def decorate(define: Any) -> Callable[..., Any]:
        if _is_switched_off():
            return in_python
        made = Intrinsic(define.__name__, define, in_python)
        made._register()
        return made

    return decorate


class Packing:
    """Packs many arguments into one, which the caller keeps in memory while the kernel runs.

    An array is seven numbers, and a tuple of arrays a hundred, which a call would pass one by one.

    Parameters
    ----------
    example : callable
        Makes a tuple of arguments of the types that are packed.

    Attributes
    ----------
    unpack : callable
        For kernels: from the address that `packer` made to the tuple of arguments.
    """

    def __init__(self, example: Callable[[], tuple[Any, ...]]) -> None:
        self._example = example
        self.unpack = self._unpack()

    @functools.cached_property
    def types(self) -> Any:
        """The types that are packed."""
        return _types.Tuple([_type_of(value) for value in self._example()])

    def _unpack(self) -> Callable[..., Any]:
        @intrinsic(lambda packed: packed)
        def unpack(typing: Any, packed: Any) -> Any:
            return self.types(packed), _lower_unpack

        return unpack


def packer(*packings: Packing) -> Callable[..., Any]:
    """Return a function for kernels: from arguments, of the types of one of these, to an address.

    It holds as long as the kernel runs that called it.
    """

    @intrinsic(lambda *arguments: arguments)
    def pack(typing: Any, *arguments: Any) -> Any:
        known = [packing.types.types for packing in packings]
        if tuple(arguments) not in known:  # nobody could tell later
            raise TypingError(f"packed are {known}, not {arguments}")
        return int64(_types.StarArgTuple.from_types(arguments)), _lower_pack

    return pack


def _lower_pack(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    pointer = _build.alloca_once(builder, values[0].type)
    _store(builder, values[0], pointer)
    return builder.ptrtoint(pointer, context.get_value_type(signature.return_type))


def _lower_unpack(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind = context.get_value_type(signature.return_type)
    return _load(builder, kind, builder.inttoptr(values[0], kind.as_pointer()))


def _store(builder: Any, value: Any, pointer: Any) -> None:
    """Store number by number: LLVM is slow at whole tuples."""
    if not isinstance(value.type, ir.Aggregate):
        builder.store(value, pointer)
        return
    for i in range(len(value.type)):
        place = _build.gep_inbounds(builder, pointer, 0, i)
        _store(builder, builder.extract_value(value, i), place)


def _load(builder: Any, kind: Any, pointer: Any) -> Any:
    """Load number by number, so that LLVM leaves out what is not used."""
    if not isinstance(kind, ir.Aggregate):
        return builder.load(pointer)
    value = ir.Constant(kind, ir.Undefined)
    for i in range(len(kind)):
        place = _build.gep_inbounds(builder, pointer, 0, i)
        value = builder.insert_value(value, _load(builder, kind.elements[i], place), i)
    return value


class Apart:
    """A kernel that others call by its address.

    Parameters
    ----------
    kernel : Kernel
        It takes an address of packed arguments (`Packing`).
    name : str
        What the `Apart` is called in the kernel's module.
    floats : int
        How many it returns, as a tuple.
    then : callable, optional
        What the other process does in the end: it calls kernels that will be called soon, so that
        they are compiled and on disk.

    Attributes
    ----------
    call : callable
        For kernels: from (the address of the kernel, packed arguments) to what it returns.
    """

    def __init__(
        self, kernel: Any, name: str, floats: int, then: Callable[[], object] = tuple
    ) -> None:
        self._kernel, self._name, self.then = kernel, name, then
        self._address, self._lock = 0, threading.Lock()
        self.call = _caller(kernel, _types.UniTuple(_types.float64, floats))

    def address(self, others: Callable[[], object]) -> int:
        """Return the address; while another process compiles it, have the `others` compiled.

        It is 0 where nothing is compiled, and while kernels run as Python until it is.
        """
        if self._address or _is_switched_off():
            return self._address
        if meanwhile.is_on and not meanwhile.is_compiler:
            done = meanwhile.later(self, lambda: self._make(others))
            return self._address if done.done() and done.exception() is None else 0
        return self._make(others)

    def wait(self, others: Callable[[], object]) -> int:
        """Return the address, however long that takes."""
        if meanwhile.is_on and not meanwhile.is_compiler:
            return int(awaited(meanwhile.later(self, lambda: self._make(others))))
        return self._make(others)

    def _make(self, others: Callable[[], object]) -> int:
        with self._lock:
            if not self._address:
                if not self._load():
                    with _helped(self._kernel.py_func.__module__, self._name):
                        others()
                    self.compile()  # as a rule this finds what the other process has left
                compiled = self._kernel.overloads[_PACKED]
                name = compiled.fndesc.llvm_func_name
                self._address = int(compiled.library.get_pointer_to_function(name))
            return self._address

    def compile(self) -> None:
        """Compile it here and now, unless it is on disk."""
        self._kernel.compile(_PACKED)

    def _load(self) -> bool:
        """Whether it was compiled before, by this process or another."""
        if _PACKED in self._kernel.overloads:
            return True
        kept = self._kernel._cache.load_overload(_PACKED, self._kernel.targetctx)
        if kept is not None:
            self._kernel.add_overload(kept)
        return kept is not None


def compile_named(arguments: list[str]) -> None:
    """Compile the `Apart` of that name in that module: what the other process does."""
    _, module, name = arguments
    apart: Apart = getattr(importlib.import_module(module), name)
    apart.compile()
    apart.then()


def _is_switched_off() -> bool:
    return bool(_config.DISABLE_JIT)


def _caller(kernel: Any, returns: Any) -> Callable[..., Any]:

    @intrinsic(lambda address, packed: kernel(packed))
    def call(typing: Any, address: Any, packed: Any) -> Any:
        return returns(int64, *_PACKED), _lower_call

    return call


def _lower_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Call as kernels call each other, errors included."""
    convention, returns = context.call_conv, signature.return_type
    form = convention.get_function_type(returns, _PACKED)
    pointer = builder.inttoptr(values[0], form.as_pointer())
    status, result = convention.call_function(builder, pointer, returns, _PACKED, values[1:])
    with _build.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return result


@contextlib.contextmanager
def _helped(module: str, name: str) -> Iterator[None]:
    """Let another process compile an `Apart`, where there can be one; wait for it in the end.

    It may fail, for whatever reason: then its machine code is not on disk, and that is all.
    """
    helper = _start(module, name)
    try:
        yield
        if helper is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                helper.wait(_PATIENCE)
    finally:
        if helper is not None:
            helper.kill()
            helper.wait()


def _start(module: str, name: str) -> subprocess.Popen[bytes] | None:
    """Start the other process; None: it would be of no use, or cannot be."""
    is_python = Path(sys.executable or "").name.startswith("python")  # and no program around it
    if CACHE_DIRECTORY is None or thread_count(-1) == 1 or not is_python:
        return None
    places = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    kept = str(Path(CACHE_DIRECTORY).parent.absolute())
    settings = {"PYTHONPATH": places, "NUMBA_CACHE_DIR": kept, "HOLDFAST_QUIET": "1"}
    nothing = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            [sys.executable, "-c", _HELPER, module, name],
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            cwd=PACKAGE.parent,
            env={**os.environ, **settings},
        )
    except OSError:
        return None
