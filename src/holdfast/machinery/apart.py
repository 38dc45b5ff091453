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

import numba
from numba.core import cgutils
from numba.extending import intrinsic

from holdfast.machinery.compile import CACHE_DIRECTORY, PACKAGE
from holdfast.machinery.threads import thread_count

_PATIENCE = 120.0  # seconds: whoever is not done by then never will be
_HELPER = "import sys; from holdfast.machinery.apart import compile_named; compile_named(sys.argv)"


class Apart:
    """A kernel of one signature, which others call by its address.

    Parameters
    ----------
    kernel : Kernel
        Called with arrays and numbers, or tuples of them.
    name : str
        What the `Apart` is called in the kernel's module.
    example : callable
        Makes arguments of the types that the kernel is called with.
    returns : numba type
        What it returns.
    """

    def __init__(
        self, kernel: Any, name: str, example: Callable[[], tuple[Any, ...]], returns: Any
    ) -> None:
        self._kernel, self._name, self._example = kernel, name, example
        self._address, self._lock = 0, threading.Lock()
        self.call = self._caller(returns)

    def address(self, meanwhile: Callable[[], object]) -> int:
        """Return the address; if it is not compiled yet, do something else `meanwhile`."""
        with self._lock:
            if not self._address and not _is_switched_off():
                if not self._load():
                    with _helped(self._kernel.py_func.__module__, self._name):
                        meanwhile()
                    self.compile()  # as a rule this finds what the other process has left
                self._address = _address_of(self._kernel, self._types)
            return self._address

    def compile(self) -> None:
        """Compile it here and now, unless it is on disk."""
        self._kernel.compile(self._types)

    def _caller(self, returns: Any) -> Callable[..., Any]:
        """Return a function for kernels: ``(address, *arguments)``."""
        if _is_switched_off():
            return lambda address, *arguments: self._kernel(*arguments)

        @intrinsic  # type: ignore[untyped-decorator]
        def call(typing: Any, address: Any, *arguments: Any) -> Any:
            if arguments != self._types:  # the code at the address knows no others
                raise numba.TypingError(f"{self._name} takes {self._types}, not {arguments}")
            return returns(address, numba.types.StarArgTuple.from_types(arguments)), _lower_call

        return call  # type: ignore[no-any-return]

    @functools.cached_property
    def _types(self) -> tuple[Any, ...]:
        return tuple(numba.typeof(value) for value in self._example())

    def _load(self) -> bool:
        """Whether it was compiled before."""
        kept = self._kernel._cache.load_overload(self._types, self._kernel.targetctx)
        if kept is not None:
            self._kernel.add_overload(kept)
        return kept is not None


def compile_named(arguments: list[str]) -> None:
    """Compile the `Apart` of that name in that module: what the other process does."""
    _, module, name = arguments
    getattr(importlib.import_module(module), name).compile()


def _is_switched_off() -> bool:
    config: Any = numba.config
    return bool(config.DISABLE_JIT)


def _address_of(kernel: Any, types: tuple[Any, ...]) -> int:
    compiled = kernel.overloads[types]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


def _lower_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """Call as kernels call each other, errors included."""
    returns, kinds = signature.return_type, list(signature.args[1])
    form = context.call_conv.get_function_type(returns, kinds)
    pointer = builder.inttoptr(values[0], form.as_pointer())
    arguments = cgutils.unpack_tuple(builder, values[1])
    status, result = context.call_conv.call_function(builder, pointer, returns, kinds, arguments)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
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
