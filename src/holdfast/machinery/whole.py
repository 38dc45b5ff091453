"""Kernels that LLVM sees once, as a whole: an entry point with all that it calls.

numba optimises every compiled function by itself, wraps it for Python, and then optimises it once
more inside of each of its callers. For a solver of some two hundred small kernels that takes more
than a minute. Here a kernel that other kernels call is only lowered to LLVM's language; a kernel
that is called from Python is an entry point: it is linked with all that it calls, and optimised
and turned into machine code once.
"""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen, compiler, dispatcher, event, registry, targetconfig, types

from holdfast.machinery.meanwhile import meanwhile

# what numba is made of: without types, and none of it promised
_codegen: Any = codegen
_dispatcher: Any = dispatcher
_registry: Any = registry
_types: Any = types
_targetconfig: Any = targetconfig


class Kernel(_registry.CPUDispatcher):  # type: ignore[misc]
    """A compiled function; called from Python it is an entry point, and else a part of one.

    A part has no wrapper for Python, and is never kept on disk by itself.
    """

    def __init__(self, py_func: Callable[..., Any], locals: Any = None, targetoptions: Any = None):
        options = {**(targetoptions or {}), "no_cfunc_wrapper": True}
        super().__init__(py_func, locals or {}, options)
        self._compiler: Any = _WholeCompiler(
            py_func, self.targetdescr, options, self.locals, compiler.Compiler
        )

    @functools.cached_property
    def part(self) -> Any:
        """The function as other kernels call it."""
        options = {**self.targetoptions, "no_cpython_wrapper": True}
        return _registry.CPUDispatcher(self.py_func, self.locals, options)

    def __call__(self, *args: Any) -> Any:
        # what runs as Python calls parts that nobody compiles by themselves: numba need not look
        return self.py_func(*args) if meanwhile.is_inside else super().__call__(*args)

    def _compile_for_args(self, *args: Any) -> Any:
        """Return what answers a call that no machine code is there for."""
        if not meanwhile.is_on or meanwhile.is_compiler:
            return super()._compile_for_args(*args)
        return meanwhile.stand_in(self, tuple(self.typeof_pyval(each) for each in args))

    # numba asks these two when a kernel calls this one
    def get_call_template(self, args: Any, kws: Any) -> Any:
        # one version for all constants: LLVM knows them where it matters
        plain = {name: _types.unliteral(kind) for name, kind in kws.items()}
        return self.part.get_call_template([_types.unliteral(kind) for kind in args], plain)

    def get_overload(self, sig: Any) -> Any:
        return self.part.get_overload(sig)


class Choice(Kernel):
    """Kernels of one name, for different classes of one argument, a struct or a named tuple.

    A caller is compiled with the version of its own kind alone.
    """

    def __init__(self, py_func: Callable[..., Any], position: int):
        super().__init__(py_func)
        self.position = position
        self.versions: dict[type, Any] = {}

    def of(self, kind: type) -> Callable[[Any], Any]:
        """Take a kernel as the version for one kind."""

        def take(version: Any) -> Any:
            self.versions[kind] = version
            return version

        return take

    def __call__(self, *args: Any) -> Any:
        return self.versions[type(args[self.position])](*args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self._version(args).get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self._version(sig).get_overload(sig)

    def _version(self, args: Any) -> Any:
        return self.versions[args[self.position].instance_class]


class _WholeCompiler(_dispatcher._FunctionCompiler):  # type: ignore[misc]
    """Compiles an entry point, and everything that it calls, into `_WholeLibrary`."""

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        codegen = self.targetdescr.target_context.codegen()
        # kernels that make no arrays are those whose loops are short
        library = _WholeLibrary if self.targetoptions.get("_nrt", True) else _ShortLoopLibrary
        with (
            _replaced(codegen, _library_class=library),
            _no_collections(),
            _quick_comparisons(),
            _remembered_calls(),
            _no_timers(),
        ):
            return super()._compile_core(args, return_type)


@contextlib.contextmanager
def _replaced(owner: Any, **attributes: Any) -> Iterator[None]:
    """Let something of numba be something else; its compiler lock is held all the while."""
    before = {name: getattr(owner, name) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: of what a compiler makes little is any, and looking costs."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _quick_comparisons() -> contextlib.AbstractContextManager[None]:
    """Compare the flags of functions by what was set; numba asks for the value of every flag.

    It does so a quarter of a million times, for every function that is looked up.
    """
    kind = _targetconfig.TargetConfig
    slow_hash, slow_equal = kind.__hash__, kind.__eq__
    hashes: dict[type, int] = {}

    def quick_hash(self: Any) -> int:
        if type(self) not in hashes:  # numba's own: of the names of the flags alone
            hashes[type(self)] = slow_hash(self)
        return hashes[type(self)]

    def quick_equal(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return slow_equal(self, other)
        said = self._values.keys() | other._values.keys()  # all others have their defaults
        return all(getattr(self, name) == getattr(other, name) for name in said)

    return _replaced(kind, __hash__=quick_hash, __eq__=quick_equal)


def _remembered_calls() -> contextlib.AbstractContextManager[None]:
    """Remember what calls of numba's own functions came to, say a sum of two floats.

    numba tries all that a sum may be, anew for each. What it last came to for the same types and
    flags, it comes to again: nothing is learned meanwhile.
    """
    kind = _types.functions.BaseFunction
    look_up = kind.get_call_type
    last: dict[Any, tuple[Any, Any]] = {}

    def remember(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return look_up(self, context, args, kws)
        flags, key = _targetconfig.ConfigStack.top_or_none(), (self, tuple(args))
        if key in last and last[key][0] == flags:
            return last[key][1]
        found = look_up(self, context, args, kws)
        last[key] = flags, found
        return found

    return _replaced(kind, get_call_type=remember)


def _no_timers() -> contextlib.AbstractContextManager[None]:
    """Time nothing: numba does so for each function, and for all that wait for it, each time."""
    return _replaced(event, install_timer=lambda *_: contextlib.nullcontext())


class _WholeLibrary(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked, optimised and made runnable when somebody asks for its address."""

    _is_made = False
    _shared_module: Any = None

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the whole."""
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing is added any more; nothing is done yet."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function; 0: it is none of this library."""
        self._ensure_finalized()
        if not self._is_made:
            if name not in _defined(self._final_module):
                return 0
            self._make()
        return int(self._codegen._engine.get_function_address(name))

    def _make(self) -> None:
        own = _defined(self._final_module)
        _link_callees(self, self._final_module)
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in own:
                function.linkage = "internal"
        passes = self._passes()
        if isinstance(passes, tuple):
            passes[0].run(self._final_module, passes[1])
        else:  # older releases of numba
            passes.run(self._final_module)
        self._final_module.verify()
        self._is_made = True
        self._finalize_final_module()

    def _passes(self) -> Any:
        return self._codegen._module_pass_manager()

    def _get_module_for_linking(self) -> Any:
        """Return all of the code: libraries of numba's own kind link no callees of callees."""
        if not self._is_made and self._shared_module is None:
            module = self._final_module.clone()
            _link_callees(self, module)
            for function in module.functions:
                _share(function)
            self._shared_module = module
        return super()._get_module_for_linking()

    @property
    def codegen(self) -> Any:
        """The code generator; for code that does not run by itself, one that sets nothing."""
        return self._codegen if self._is_made else _NothingToSet()


class _ShortLoopLibrary(_WholeLibrary):
    """Code whose loops run a few times: to unroll them takes a third longer, and brings nothing."""

    def _passes(self) -> Any:
        if not hasattr(_codegen, "create_pass_builder"):  # older releases of numba
            return self._codegen._module_pass_manager(loop_vectorize=False)
        with _replaced(_codegen, create_pass_builder=_pass_builder_for_short_loops):
            return self._codegen._module_pass_manager()


def _pass_builder_for_short_loops(machine: Any, opt: int, **_: Any) -> Any:
    options = llvm.create_pipeline_tuning_options(opt)
    options.loop_unrolling = options.loop_vectorization = options.slp_vectorization = False
    return llvm.create_pass_builder(machine, options)


class _NothingToSet:
    """Stands for a code generator where numba sets what only running code has."""

    def set_env(self, env_name: str, env: Any) -> None:
        pass


def _defined(module: Any) -> set[str]:
    return {function.name for function in module.functions if not function.is_declaration}


def _share(function: Any) -> None:
    """Allow several copies of a function, and drop it where nobody calls it."""
    if not function.is_declaration and function.linkage == llvm.Linkage.external:
        function.linkage = "linkonce_odr"


def _link_callees(library: Any, module: Any) -> None:
    """Link everything that a library calls into the module."""
    for callee in _callees(library):
        if hasattr(library, "_reload_init"):  # not in all releases of numba
            library._reload_init.update(callee._reload_init)
        if isinstance(callee, _WholeLibrary) and not callee._is_made:
            for function in callee._final_module.functions:
                _share(function)
            module.link_in(callee._final_module, preserve=True)
        else:
            module.link_in(callee._get_module_for_linking(), preserve=True)


def _callees(library: Any) -> list[Any]:
    """List all that a library calls, callers first: what nobody called so far is not linked."""
    order: list[Any] = []
    seen = {library}

    def visit(caller: Any) -> None:
        for callee in caller._linking_libraries:
            if callee not in seen:
                seen.add(callee)
                if isinstance(callee, _WholeLibrary) and not callee._is_made:
                    visit(callee)
                order.append(callee)

    visit(library)
    return order[::-1]
