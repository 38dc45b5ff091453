"""Models in skops files: unpacked only if small, whole, and made of types that are trusted."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from holdfast.machinery.plain_files import FileKind, parse_json
from holdfast.models.classes import UNSAID

# What scikit-learn's own estimators hold and skops does not know; none runs anything when made.
_TRUSTED = (
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer._RemainderColsList",  # of releases 1.5 and 1.6
    "sklearn.metrics._classification.balanced_accuracy_score",
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    "scipy.interpolate._bsplines.BSpline",
    "scipy._lib.array_api_compat.numpy._aliases.asarray",
)
_MOST_MEMBERS = 20_000
_NOTE = "holdfast.json"  # the member of ours; skops reads only those that it knows
_NOTE_KIND = FileKind("a note", most_bytes=10_000)


def unpack(raw: bytes, most_bytes: int) -> tuple[Any, Any]:
    """Return the model in the bytes of a skops file, and the favourable class, or `UNSAID`."""
    import skops.io

    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            _check_members(archive, most_bytes)
            note = _read_note(archive)
        strangers = _strangers(raw)
        if strangers:
            raise ValueError(_refused(strangers))
        return skops.io.loads(raw, trusted=list(_TRUSTED)), note
    except ValueError:
        raise
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"this is not a skops file, or it is damaged ({error}); write it with "
            "skops.io.dump(model, 'model.skops')"
        ) from None
    except Exception as error:  # whatever a damaged or hostile file makes skops stumble over
        why = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"this skops file cannot be read: {why}") from None


def pack(model: Any, favorable_class: Any) -> bytes:
    """Return the bytes of a skops file of a model, with the favourable class beside it."""
    import skops.io

    raw = skops.io.dumps(model, compression=zipfile.ZIP_DEFLATED)
    strangers = _strangers(raw)
    if strangers:
        raise ValueError(_refused(strangers))
    buffer = io.BytesIO(raw)
    with zipfile.ZipFile(buffer, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        note = {"holdfast_model": 1, "favorable_class": favorable_class}
        archive.writestr(_NOTE, json.dumps(note))
    return buffer.getvalue()


def _check_members(archive: zipfile.ZipFile, most_bytes: int) -> None:
    """Refuse what is too much, before anything is unpacked; Python unpacks no more than it says."""
    names = archive.namelist()
    if len(names) > _MOST_MEMBERS or len(set(names)) < len(names):
        raise ValueError(
            f"this skops file holds too many members ({len(names)}), or two with the same name"
        )
    total = _unpacked(archive)
    if total <= most_bytes:  # sparse matrices are packed once more
        for name in names:
            if name.endswith(".npz"):
                with zipfile.ZipFile(io.BytesIO(archive.read(name))) as inner:
                    total += _unpacked(inner)
    if total > most_bytes:
        raise ValueError(
            f"this skops file unpacks to more than {most_bytes:,} bytes, which is too large for a "
            "model"
        )
    if "schema.json" not in names:
        raise ValueError("this zip file is not a skops file: it has no schema.json")


def _unpacked(archive: zipfile.ZipFile) -> int:
    """Return how many bytes are in an archive; refuse ways of packing that have no limit."""
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(
                f"this skops file packs {member.filename!r} in a way that is not supported"
            )
        if member.flag_bits & 0x1:
            raise ValueError("this skops file is encrypted, which is not supported")
    return sum(member.file_size for member in archive.infolist())


def _read_note(archive: zipfile.ZipFile) -> Any:
    if _NOTE not in archive.namelist():
        return UNSAID
    text = archive.read(_NOTE).decode("utf-8", errors="replace")
    if len(text) > _NOTE_KIND.most_bytes:
        raise ValueError(f"its member {_NOTE} is too large")
    note = parse_json(text, _NOTE_KIND)
    is_note = isinstance(note, dict) and note.get("holdfast_model") == 1
    if not is_note or "favorable_class" not in note:
        raise ValueError(f"its member {_NOTE} does not say which class is favourable")
    return note["favorable_class"]


def _strangers(raw: bytes) -> list[str]:
    import skops.io

    return [name for name in skops.io.get_untrusted_types(data=raw) if name not in _TRUSTED]


def _refused(strangers: list[str]) -> str:
    one = len(strangers) == 1
    return (
        f"this file holds {', '.join(strangers)}, which {'is' if one else 'are'} not trusted: a "
        "model is only read if it consists of scikit-learn's own linear models and transformers. "
        "Give its coefficients as a JSON file instead, or use Holdfast from Python"
    )
