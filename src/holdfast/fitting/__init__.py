"""A sensible model, and a draft of what people can change, for those who have only data."""

from holdfast.fitting.default import Fitted, fit_default
from holdfast.fitting.drafting import draft_actions, sounds_protected

__all__ = ["Fitted", "draft_actions", "fit_default", "sounds_protected"]
