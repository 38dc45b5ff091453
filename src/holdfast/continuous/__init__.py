"""Recourse for columns that may take any value: every answer, and the whole frontier."""
