"""Machine code on disk: the same for the package wherever it lies, and for many processes at once.

numba looks for machine code under the path of the source file, so that what was compiled on one
machine is not found on another where the environment is unpacked elsewhere. And it numbers the
files of a function: of two processes that compile different versions at the same time, both take
the same number, and a third one might run the code of one for the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from typing import Any

from numba.core import caching

_caching: Any = caching  # without types, and none of it promised


class KernelCache(_caching.FunctionCache):  # type: ignore[misc]
    """The machine code of one entry point, in a directory for one state of all sources."""

    def __init__(self, py_func: Callable[..., Any], directory: str) -> None:
        class Here(_ModuleDirectory):
            home = directory

        class Files(_caching.CompileResultCacheImpl):  # type: ignore[misc]
            _locator_classes = [Here]  # noqa: RUF012

        self._impl_class = Files
        super().__init__(py_func)
        self._cache_file = _FileForEachVersion(self._cache_path, self._impl.filename_base, "")

    def _save_overload(self, sig: Any, data: Any) -> None:
        """Keep a version; where that fails, on a full disk, it has been compiled all the same."""
        with contextlib.suppress(OSError):
            super()._save_overload(sig, data)


class _ModuleDirectory(_caching._CacheLocator):  # type: ignore[misc]
    """A directory for each module, by its name."""

    home: str

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._line = py_func.__code__.co_firstlineno
        self._path = os.path.join(self.home, py_func.__module__)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _ModuleDirectory:
        return cls(py_func)

    def get_cache_path(self) -> str:
        return self._path

    def get_source_stamp(self) -> str:
        return ""  # the name of the directory tells the state of the sources

    def get_disambiguator(self) -> str:
        return str(self._line)


class _FileForEachVersion(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """Files that are named after what they hold, each written before the index names it.

    What two processes write into the index at once, one of them may lose: it is compiled again.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except OSError:  # nobody may read it: as if nothing were kept
            return {}

    def save(self, key: Any, data: Any) -> None:
        name = f"{self._index_name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.nbc"
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})
