"""Reading a model once, and again only when it has changed."""

from __future__ import annotations

import copy
import copyreg
import hashlib
import pickle
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from holdfast.models.encoding import Encoding


class _Known(NamedTuple):
    """What was read of a model, and all that was fitted in it then."""

    model: Any
    content: bytes
    encoding: Encoding


class ModelMemory:
    """Reads models, and remembers the last one, of which it takes a copy.

    Whether anything has been fitted again is found out faster than all of it is read. A model that
    is no estimator of scikit-learn's kind, or chooses by itself what is pickled or copied, is read
    each time, and not copied.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0]], [False, True])
    >>> memory = ModelMemory()
    >>> first = memory.read(model, None)
    >>> memory.read(model, None) is first
    True
    >>> memory.read(model.fit([[1.0], [0.0]], [False, True]), None) is first
    False
    """

    def __init__(self) -> None:
        self._known: _Known | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy nothing that can be read again."""
        return type(self), ()

    def read(self, model: Any, favorable_class: Any, people: Any = None) -> Encoding:
        """Take a model apart, as `Encoding.of` does, unless it is as it was last time."""
        known, content = self._known, _content(model, favorable_class)
        if known is not None and known.model is model and known.content == content:
            return known.encoding
        # what becomes of the model later must not reach results that rest on this reading
        whole = None if content is None else _copied(model)
        if content is None or whole is None:
            return Encoding.of(model, favorable_class=favorable_class, people=people)
        encoding = Encoding.of(whole, favorable_class=favorable_class, people=people)
        self._known = _Known(model, content, encoding)
        return encoding


def _copied(model: Any) -> Any:
    """Return a copy of a model; None where it cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception:  # whatever a step of somebody's own raises: it is then read each time
        return None


class _Digest:
    """A file that keeps no more than a digest of what is written."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=32)

    def write(self, some: Any) -> None:
        """Take in some bytes."""
        self._hash.update(some)

    def digest(self) -> bytes:
        """Return the digest of all of them."""
        return self._hash.digest()


class _Pickler(pickle.Pickler):
    """Writes down all that objects hold; refuses those that choose what is written, or copied."""

    def reducer_override(self, some: Any) -> Any:
        kind = type(some)
        if kind.__module__.partition(".")[0] in _WHOLE or issubclass(kind, type):
            return NotImplemented
        is_plain = all(getattr(kind, name, None) in plain for name, plain in _PLAIN.items())
        if not is_plain or kind in copyreg.dispatch_table:
            raise pickle.PicklingError(f"{kind.__name__} is not pickled as objects usually are")
        return NotImplemented


# Of these packages it is known that they leave out nothing that a model feels.
_WHOLE = ("builtins", "functools", "numpy", "pandas", "scipy", "sklearn")
_PLAIN: dict[str, tuple[Any, ...]] = {
    "__reduce__": (object.__reduce__,),
    "__reduce_ex__": (object.__reduce_ex__,),
    "__getstate__": (object.__getstate__, BaseEstimator.__getstate__),
    "__deepcopy__": (None,),
    "__copy__": (None,),
}


def _content(model: Any, favorable_class: Any) -> bytes | None:
    """Tell a model from others by all that was fitted; None where that cannot be written down."""
    if not isinstance(model, BaseEstimator):
        return None
    written = _Digest()
    try:
        _Pickler(written, protocol=5).dump((model, favorable_class))
    except Exception:  # whatever a step of somebody's own raises: it is then read each time
        return None
    return written.digest()
