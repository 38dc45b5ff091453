import contextlib
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from holdfast.machinery.meanwhile import meanwhile

with contextlib.suppress(ImportError):
    # its solvers and those of cvxpy are both linked with HiGHS: only this one bears to be first
    import optbinning  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))
# tests run side by side, a process for each core: more threads would only wait for one another
torch.set_num_threads(1)
# the same examples in every run; other seeds with `pytest --hypothesis-profile=default`
settings.register_profile("same", derandomize=True, deadline=None)  # machines are busy at times
settings.load_profile("same")


@pytest.fixture(autouse=True)
def compiled_at_once():
    """What a test of the service has begun, to answer in Python meanwhile, ends with the test."""
    yield
    meanwhile.is_on = False


@pytest.fixture(scope="module")
def browser():
    """A real browser, for the tests of pages."""
    from page_visits import launch, playwright

    with playwright.sync_playwright() as driver:
        browser = launch(driver)
        yield browser
        browser.close()


@pytest.fixture
def page(server, browser):
    """A tab of its own in front of the server of the module."""
    context = browser.new_context(base_url=server.address)
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()
