"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.demo.people import run_demo

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def run_examples(page: str) -> dict:
    """Run all Python of a page, one piece after the other, as a reader would."""
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(code, names)
    return names


def test_the_example_prints_what_the_page_shows(capsys):
    names = run_examples(README)
    printed = capsys.readouterr().out
    said = r"```\n\nThis prints \(the last line is wrapped here\):\n\n```text\n(.*?)```"
    (shown,) = re.findall(said, README, flags=re.DOTALL)
    *table, explained = (line.rstrip() for line in printed.splitlines())
    *shown_table, first, second, third = shown.splitlines()
    assert shown_table == table
    assert " ".join([first, second, third]) == explained
    assert names["advice"].status.size > 100


def test_the_examples_of_the_linear_page_run(capsys):
    names = run_examples((ROOT / "docs" / "linear.md").read_text())
    assert "optimal" in capsys.readouterr().out
    assert names["curve"].is_piecewise_linear


def test_every_page_that_is_linked_is_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_examples_of_the_actions_run(capsys):
    names = run_examples((ROOT / "docs" / "actions.md").read_text())
    assert names["actions"]["job"].immutable
    assert names["mine"]["savings_status"].immutable
    assert names["curve"].cost[0] < names["curve"].cost[-1]
    printed = capsys.readouterr().out
    assert "savings_status" in printed
    assert "One of these models gives the plain advice" in printed


def test_the_examples_of_calibration_run(capsys):
    names = run_examples((ROOT / "docs" / "calibrate.md").read_text())
    assert names["robust_to"].radius == names["sizing"].chosen.radius > 0.0
    assert len(names["known"].models) == 1
    assert "90% was asked for" in capsys.readouterr().out


def test_the_examples_of_the_sets_run(capsys):
    names = run_examples((ROOT / "docs" / "sets.md").read_text())
    assert names["result"].certificate(0).weights == pytest.approx([0.0, 0.5, 0.5])
    assert "ellipsoid, radius=2" in capsys.readouterr().out


def test_the_examples_of_the_data_run(capsys):
    names = run_examples((ROOT / "docs" / "data.md").read_text())
    assert len(names["later"].features) == 1000
    assert "Hofmann" in capsys.readouterr().out


def test_the_examples_of_the_models_run(capsys):
    names = run_examples((ROOT / "docs" / "models.md").read_text())
    assert names["actions"]["credit_amount"].unit == "DM"
    printed = capsys.readouterr().out
    assert "optimal" in printed
    assert "duration from 48 to 44 months" in printed


def test_the_examples_of_the_methods_run(capsys):
    names = run_examples((ROOT / "docs" / "methods.md").read_text())
    assert names["refined"].price.mean() <= names["plain"].price.mean()
    assert capsys.readouterr().out


def test_the_examples_of_the_networks_run(capsys):
    names = run_examples((ROOT / "docs" / "networks.md").read_text())
    assert "5 proven valid" in capsys.readouterr().out
    for bracket in (names["bracket"], names["result"].bracket):
        assert (bracket.proven_score <= bracket.found_score).all()
        assert (bracket.width <= 0.01).all()


def test_the_numbers_of_the_demonstration_are_those_it_prints():
    demo = run_demo()
    both = demo.plain.found & demo.robust.found
    for name, advice in (("plain", demo.plain), ("robust", demo.robust)):
        row = (
            f"{name} {advice.found.sum()} of {len(both)} {advice.cost[both].mean():.2f} "
            f"[0-9]e-1[0-9] ([0-9.]+)%"
        )
        said = re.search(row.replace(" ", " +"), README)
        assert said, row
        # which model a resample gives depends a little on the release of scikit-learn
        assert float(said[1]) == pytest.approx(100 * advice.held[both].mean(), abs=1.0)


def test_ci_runs_the_test_command_of_the_readme():
    (command,) = re.findall(r"pip install -e '\.\[test\]' && (pytest .*)", README)
    script = (ROOT / ".ci" / "run").read_text()
    assert f"pip install --quiet -e '.[test]'\n{command}\n" in script
