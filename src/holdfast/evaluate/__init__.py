"""What recourses are worth: one tidy table, a row for each recourse and each way to judge it."""

from holdfast.evaluate.tidy import COLUMNS, KEYS, check_table, read_table, write_table

__all__ = ["COLUMNS", "KEYS", "check_table", "read_table", "write_table"]
