"""What is shown of a reproduction: tables, figures and a page, made from one table of results."""

from holdfast.paper.report.write import write_report

__all__ = ["write_report"]
