"""Reading a model once, and again only when it has changed."""

from __future__ import annotations

import copy
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
    """Reads models, of which it takes a copy, and remembers the last one.

    Whether anything has been fitted again is found out faster than all of it is read.

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
        whole = model if content is None else _copied(model)
        encoding = Encoding.of(whole, favorable_class=favorable_class, people=people)
        if content is not None:
            self._known = _Known(model, content, encoding)
        return encoding


def _copied(model: Any) -> Any:
    """Return a copy of a model; the model itself where it cannot be copied."""
    try:
        return copy.deepcopy(model)
    except Exception:  # whatever a step of somebody's own raises
        return model


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


def _content(model: Any, favorable_class: Any) -> bytes | None:
    """Tell a model from others by all that was fitted; None where that cannot be written down."""
    if not isinstance(model, BaseEstimator):
        return None
    written = _Digest()
    try:
        pickle.Pickler(written, protocol=5).dump((model, favorable_class))
    except Exception:  # whatever a step of somebody's own raises: it is then read each time
        return None
    return written.digest()
