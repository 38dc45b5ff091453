"""Processes that work answers out for the page."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from holdfast.machinery.threads import check_time, limited
from holdfast.web.helpers import Helpers


def who(desk, *given):
    """Tell which process works, at which desk."""
    return os.getpid(), desk, given


def refuse(desk):
    raise ValueError(f"no, says {desk}")


def dawdle(desk):
    while True:
        check_time()
        time.sleep(0.01)


def die(desk, here):
    if os.getpid() != here:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@pytest.fixture
def helpers():
    made = Helpers(2, str, ("a desk there",))
    yield made
    made.close()


def test_before_there_are_helpers_it_is_worked_out_here(helpers):
    assert helpers.ask("a desk here", who, 1) == (os.getpid(), "a desk here", (1,))


def test_helpers_work_it_out_elsewhere_and_at_the_same_time(helpers):
    helpers.start()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(helpers.ask("a desk here", who, 1, 2)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for process, desk, given in found:
        assert process != os.getpid()
        assert (desk, given) == ("a desk there", (1, 2))


def test_what_is_wrong_is_said_and_time_is_kept(helpers):
    helpers.start()
    with pytest.raises(ValueError, match="no, says a desk there"):
        helpers.ask("a desk here", refuse)
    with limited(0.3), pytest.raises(TimeoutError, match="in time"):
        helpers.ask("a desk here", dawdle)


def test_a_helper_that_is_killed_is_replaced(helpers):
    helpers.start()
    assert helpers.ask("a desk here", die, os.getpid()) == "alive"  # so it was worked out here
    for _ in range(600):
        process, _, _ = helpers.ask("a desk here", who)
        if process != os.getpid():
            return
        time.sleep(0.1)
    pytest.fail("there are no helpers any more")


def test_closing_ends_them_and_answers_go_on_here(helpers):
    helpers.start()
    process, _, _ = helpers.ask("a desk here", who)
    helpers.close()
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        pytest.fail("a helper goes on")
    assert helpers.ask("a desk here", who)[0] == os.getpid()
    helpers.start()  # nobody wants them any more
    assert helpers.ask("a desk here", who)[0] == os.getpid()


def test_one_processor_needs_no_helpers():
    alone = Helpers(1, str, ("a desk there",))
    alone.start()
    assert alone.ask("a desk here", who)[0] == os.getpid()
    alone.close()
