"""The pages without a browser: what they say, and what becomes of requests that make no sense."""

from __future__ import annotations

import pytest

from holdfast.result.status import Status
from holdfast.web import pages
from holdfast.web.people import Listed


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (Status.INFEASIBLE, "Refused, no way"),
        (Status.GAP_OPEN, "Refused, not settled"),
        (Status.NOT_FOUND, "Refused, not settled"),
        (Status.STILL_REFUSED, "Refused, not settled"),
    ],
)
def test_only_where_nothing_helps_there_is_no_way(status, said):
    assert pages._decided(Listed(0, {}, status, approved=False)) == said
    assert pages._decided(Listed(0, {}, status, approved=False, is_helped=True)) == "Refused"
