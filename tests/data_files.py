"""Tests that need the files of the data run where HOLDFAST_DATA_DIR names their directory."""

from __future__ import annotations

import os

import pytest

needs_files = pytest.mark.skipif(
    "HOLDFAST_DATA_DIR" not in os.environ, reason="HOLDFAST_DATA_DIR names no directory of files"
)
