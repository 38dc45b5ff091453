"""What people read: a report for those who answer for the advice, a letter, an audit."""

from holdfast.report.audit import Audit, audit, read_audit
from holdfast.report.letter import (
    Letter,
    LetterSettings,
    find_person,
    make_letter,
    render_letter,
)
from holdfast.report.page import write_report_page
from holdfast.report.summary import Summary, summarise

__all__ = [
    "Audit",
    "Letter",
    "LetterSettings",
    "Summary",
    "audit",
    "find_person",
    "make_letter",
    "read_audit",
    "render_letter",
    "summarise",
    "write_report_page",
]
