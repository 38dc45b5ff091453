"""Templates: ours, and those of users, in a sandbox; a mistake in one is a message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import PackageLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from holdfast.machinery.plain_files import FileKind, read_text

_TEMPLATE = FileKind("a template")


def render_own(name: str, **values: Any) -> str:
    """Fill in a template of the package."""
    return _environment().get_template(name).render(**values)


def render_given(path: Path, **values: Any) -> str:
    """Fill in a template that a user has written; it can reach nothing but the values."""
    text = read_text(path, _TEMPLATE)
    try:
        return _environment().from_string(text).render(**values)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        place = f"{path}, line {line}" if line else str(path)
        raise ValueError(f"{place}: the template cannot be used: {error}") from None
    except Exception as error:  # whatever an expression in it may raise
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path}: the template cannot be used: {what}") from None


def _environment() -> SandboxedEnvironment:
    return SandboxedEnvironment(
        loader=PackageLoader("holdfast.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
