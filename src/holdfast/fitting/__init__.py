"""A sensible model for people who have data but no model."""

from holdfast.fitting.default import Fitted, fit_default

__all__ = ["Fitted", "fit_default"]
