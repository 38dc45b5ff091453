import contextlib
import sys
from pathlib import Path

import torch
from hypothesis import settings

with contextlib.suppress(ImportError):
    # its solvers and those of cvxpy are both linked with HiGHS: only this one bears to be first
    import optbinning  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))
# tests run side by side, a process for each core: more threads would only wait for one another
torch.set_num_threads(1)
# the same examples in every run; other seeds with `pytest --hypothesis-profile=default`
settings.register_profile("same", derandomize=True)
settings.load_profile("same")
