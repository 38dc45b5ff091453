"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from holdfast import Status
from holdfast.demo import run_demo

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict = {}
    exec(code, names)
    assert names["result"].status[0] is Status.OPTIMAL
    assert np.all(names["result"].gap <= 1e-9)
    assert "optimal" in capsys.readouterr().out


def test_the_numbers_of_the_demonstration_are_those_it_prints():
    demo = run_demo()
    both = demo.plain.found & demo.robust.found
    for name, advice in (("plain", demo.plain), ("robust", demo.robust)):
        row = (
            f"{name} {advice.found.sum()} of {len(both)} {advice.price[both].mean():.2f} "
            f"[0-9]e-1[0-9] {advice.held[both].mean():.1%}"
        )
        assert re.search(row.replace(" ", " +"), README), row


def test_ci_runs_the_test_command_of_the_readme():
    (command,) = re.findall(r"pip install -e '\.\[test\]' && (pytest .*)", README)
    script = (ROOT / ".ci" / "run").read_text()
    assert f"pip install --quiet -e '.[test]'\n{command}\n" in script
