"""The rules of the house: which rooms may import which, and what `import holdfast` may load."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.machinery.compile import kernel_sources

PACKAGE = Path(holdfast.__file__).parent
ROOMS = sorted(PACKAGE.rglob("*.py"))

# From what is asked to what is shown: a room imports only rooms that stand before it.
FLOOR_PLAN = [
    {"machinery"},
    {"problem"},
    {"core", "certificate"},
    {"result"},
    {"continuous", "discrete"},
    {"models"},
    {"actions"},
    {"recommend", "methods", "sets", "datasets"},
    {"evaluate", "calibration"},
    {"files", "fitting"},
    {"engines", "report"},
    {"paper", "demo", "web"},
    {"cli"},
]
# Doors that open only when they are used, so that no cycle arises at import.
LATE = {("result", "continuous")} | {(room, "__init__") for room in ("cli", "files", "web")}


def room_of(path: Path) -> str:
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "cli" if room == "__main__" else room


def modules_of(path: Path) -> set[tuple[str, bool]]:
    """Modules of ours that are imported by a file, and whether at its top level."""
    tree = ast.parse(path.read_text())
    found = set()
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name == "holdfast" or name.startswith("holdfast."):
                found.add((name, node in tree.body))
    return found


def imports_of(path: Path) -> set[tuple[str, bool]]:
    """Rooms imported by a file, and whether at its top level."""
    return {((*name.split("."), "__init__")[1], at_top) for name, at_top in modules_of(path)}


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    room = room_of(path)
    if room == "__init__":
        return
    floor = {name: k for k, rooms in enumerate(FLOOR_PLAN) for name in rooms}
    assert room in floor, f"{room} has no place in the floor plan"
    for other, at_top in imports_of(path):
        if other == room or (not at_top and (room, other) in LATE):
            continue
        allowed = floor[other] < floor[room]
        assert allowed, f"{room} must not import {other}"


def test_the_certificate_knows_nothing_of_the_solvers():
    assert "core" not in {name for name, _ in imports_of(PACKAGE / "certificate.py")}
    for path in (PACKAGE / "core").glob("*.py"):
        assert "certificate" not in {name for name, _ in imports_of(path)}


def files_imported_by(path: Path) -> set[Path]:
    """The files of the package whose names a file imports, from wherever in its code."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    places = [PACKAGE.parent.joinpath(*name.split(".")) for name in modules]
    files = {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return files & set(ROOMS)


def test_machine_code_answers_to_all_that_kernels_are_made_of():
    sources = set(kernel_sources(PACKAGE))
    holders = [path for path in ROOMS if "kernel\ndef " in path.read_text()]
    assert len(holders) > 20
    assert sources >= set(holders)
    for path in sources:
        missing = files_imported_by(path) - sources
        assert not missing, f"{path} may lend kernels something of {missing}"


def test_machine_code_stays_valid_when_other_rooms_change():
    rooms = {room_of(path) for path in kernel_sources(PACKAGE)}
    assert not rooms & {"actions", "recommend", "evaluate", "cli", "demo"}


@pytest.mark.parametrize(
    "what",
    [
        "import holdfast",
        "from holdfast.evaluate import evaluate_recourse",
        "from holdfast.paper import Algorithm1, RoarAsPublished, RobustBayesianAsPublished",
    ],
)
def test_importing_is_light(what):
    code = f"import sys; {what}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"torch", "matplotlib", "sklearn", "pandas", "fastapi", "flask", "cvxpy", "rich"}
    heavy |= {"jsonschema", "statsmodels"}  # numba loads yaml wherever it is installed
    assert not heavy & set(loaded)


def test_machine_code_is_kept_for_one_state_of_all_sources(tmp_path):
    """Change any source, and another directory is used: no stale kernels."""
    copy = tmp_path / "holdfast"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from holdfast.machinery import compile; print(compile.CACHE_DIRECTORY)"

    def directory() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout.strip()

    before = directory()
    assert directory() == before
    for name in ("core/kinds.py", "problem/problem.py", "machinery/numbers.py"):
        path = copy / name
        path.write_text(path.read_text() + "\n# changed\n")
        after = directory()
        assert after != before, name
        before = after


def test_a_name_is_one_thing():
    """Classes, and functions that other modules may import, have names of their own."""
    places: dict[str, list[str]] = {}
    for path in ROOMS:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    several = {name: files for name, files in places.items() if len(files) > 1}
    assert not several


def test_functions_take_few_things():
    """More than eight only by name at a door, or as the plain arrays of a kernel."""
    for path in ROOMS:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
            if "kernel" in marks or "choice" in marks:
                continue
            given = [*node.args.posonlyargs, *node.args.args]
            given = [each for each in given if each.arg not in ("self", "cls")]
            assert len(given) <= 8, f"{path}: {node.name} takes {len(given)}"


def imports_from(path: Path) -> set[tuple[str, str]]:
    """What a script takes from the package, wherever in its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            found |= {(str(node.module), alias.name) for alias in node.names}
    return found


def test_scripts_import_what_there_is():
    root = Path(__file__).parent.parent
    scripts = [
        path for room in ("benchmarks", "experiments") for path in (root / room).glob("*.py")
    ]
    assert len(scripts) > 8
    for path in scripts:
        for module, name in imports_from(path):
            place = importlib.import_module(module)
            assert hasattr(place, name) or importlib.import_module(f"{module}.{name}"), path
