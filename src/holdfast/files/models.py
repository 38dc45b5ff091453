"""Fitted models in files: skops, JSON of coefficients, ONNX; what could run code is refused."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.machinery.plain_files import naming, replacing
from holdfast.models.classes import favorable_of, favorable_position, spelled
from holdfast.models.encoding.reading import plain, shorten

MOST_MODEL_BYTES = 100_000_000  # of the file, and of what it unpacks to
SUFFIXES = (".skops", ".json", ".onnx")
_PICKLED = (".pkl", ".pickle", ".joblib")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model as it came from a file.

    Attributes
    ----------
    path : Path
    model : fitted classifier or pipeline
    favorable_class : label
        The class that people want, one of the model's own labels.
    sha256 : str
        Checksum of the file that was read.
    can_retrain : bool
        Whether the model can be fitted again; coefficients alone cannot.
    """

    path: Path
    model: Any
    favorable_class: Any
    sha256: str
    can_retrain: bool


def load_model(path: str | Path, favorable_class: str | None = None) -> ModelFile:
    """Read a fitted model of two classes; nothing in the file is executed.

    Parameters
    ----------
    path : str or Path
        A .skops file, as `save_model` or `skops.io.dump` write it, of scikit-learn's own classes; a
        .json file of coefficients, see `holdfast.files.json_models`; or an .onnx file of a linear
        model, see `holdfast.files.onnx_models`.
    favorable_class : str, optional
        The class that people want, as it is typed: "0", "False", "good". It may be left out where
        the file says it, and where the classes are False and True.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> fitted = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(fitted, folder + "/model.skops", favorable_class=0)
    ...     found = load_model(folder + "/model.skops")
    >>> found.favorable_class, found.can_retrain, found.model
    (0, True, LogisticRegression())
    """
    path = Path(path)
    raw = _read_bytes(path)
    with naming(path):
        model, said = _model_in(raw, path)
        classes = _classes(model)
        wanted = favorable_of(classes, said, favorable_class)
    digest = hashlib.sha256(raw).hexdigest()
    return ModelFile(path, model, wanted, digest, can_retrain=path.suffix.lower() == ".skops")


def save_model(model: Any, path: str | Path, favorable_class: Any) -> None:
    """Write a fitted model to a .skops file, with the class that people want; whole or not at all.

    What `load_model` would refuse is refused here.
    """
    from holdfast.files.skops_models import pack

    path = Path(path)
    if path.suffix.lower() != ".skops":
        raise ValueError(f"path = {path} does not end in .skops")
    with naming(path):
        classes = _classes(model)
        wanted = plain(favorable_class)
        known = favorable_position(classes, wanted)
        if known is None:
            raise ValueError(
                f"favorable_class = {wanted!r} is not one of the classes {spelled(classes)}"
            )
        packed = pack(model, classes[known])
    with replacing(path) as draft:
        draft.write_bytes(packed)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError(f"{path} is a directory, not a model file")
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_MODEL_BYTES + 1)
    except OSError as error:
        raise type(error)(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > MOST_MODEL_BYTES:
        raise ValueError(
            f"{path} is larger than {MOST_MODEL_BYTES:,} bytes, which is too large for a model"
        )
    return raw


def _model_in(raw: bytes, path: Path) -> tuple[Any, Any]:
    """Return the model in a file, and the favourable class that it states, or `UNSAID`."""
    suffix = path.suffix.lower()
    if not raw:
        raise ValueError("the file is empty")
    if suffix in _PICKLED or _begins_like_pickle(raw):
        raise ValueError(_refused_pickle(path))
    if suffix == ".skops":
        from holdfast.files.skops_models import unpack

        return unpack(raw, MOST_MODEL_BYTES)
    if suffix == ".json":
        from holdfast.files.json_models import model_from_json

        return model_from_json(raw)
    if suffix == ".onnx":
        from holdfast.files.onnx_models import model_from_onnx

        return model_from_onnx(raw)
    raise ValueError(f"a model file must end in one of {', '.join(SUFFIXES)}, not {suffix!r}")


def _begins_like_pickle(raw: bytes) -> bool:
    return raw[0] == 0x80 and len(raw) > 1 and 2 <= raw[1] <= 5


def _refused_pickle(path: Path) -> str:
    return (
        "this is a pickle (or joblib) file, which can run arbitrary code when opened, so it is "
        'refused. If you trust its source, convert it once:\n  python -c "import joblib, '
        f"skops.io; skops.io.dump(joblib.load({str(path)!r}), "
        f'{str(path.with_suffix(".skops"))!r})"'
    )


def _classes(model: Any) -> list[Any]:
    """Return the two labels of a fitted classifier, as plain values; refuse anything else."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    if not hasattr(model, "fit") or not hasattr(model, "predict"):
        raise ValueError(f"this is {_article(name)}, not a model")
    try:
        check_is_fitted(model)
        classes = [plain(label) for label in model.classes_]
    except NotFittedError:
        raise ValueError(f"the model ({name}) is not fitted: fit it before saving it") from None
    except Exception as error:  # a stranger's attributes may do anything
        why = str(error).partition("\n")[0]
        raise ValueError(f"the model ({name}) is not a fitted classifier: {why}") from None
    if len(classes) != 2 or not all(isinstance(k, (str, bool, int, float)) for k in classes):
        raise ValueError(
            f"the model ({name}) has {len(classes)} classes, {shorten(classes)}; recourse needs "
            "exactly two: approved and refused"
        )
    return classes


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"
