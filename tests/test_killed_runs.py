"""A run that is killed at any moment goes on, and ends as if it never had been."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast
from holdfast.datasets import load_german
from holdfast.files.models import save_model

NUMBERS, LEVELS = ["duration", "credit_amount", "age"], ["savings_status", "housing"]
PEOPLE = 1400  # in parts of 256 and more
COMMAND = [sys.executable, "-m", "holdfast", "recommend", "model.skops", "people.csv"]
COMMAND += ["--actions", "actions.yaml", "--guarantee", "0.5", "--robust-to", "p=1,radius=0.1"]
COMMAND += ["--key", "number", "--out", "out.parquet", "--jobs", "1"]
SEVERAL = [*COMMAND[:-1], "2"]  # processes, where there are enough people
FILES = ("model.skops", "people.csv", "actions.yaml")

# A process that has imported and compiled all, and then has a child of its own do each run. What
# it reads tells the child when to die: before a call of the system that changes a disk, or never.
ZYGOTE = """
    import json, os, signal, sys
    import holdfast.engines.parts, holdfast.engines.local, holdfast.recommend, sklearn.pipeline
    import pandas, pyarrow.parquet, skops.io, jsonschema, yaml
    from holdfast.cli import main

    CALLS = ["open", "fsync", "replace", "mkdir", "unlink", "rmdir"]

    def die_at(count):
        calls = 0
        def watched(real):
            def call(*args, **kwargs):
                nonlocal calls
                calls += 1
                if calls == count:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)
            return call
        for name in CALLS:
            setattr(os, name, watched(getattr(os, name)))

    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            os.chdir(order["place"])
            if order["calls"]:
                die_at(order["calls"])
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = main(order["command"])
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A job, and in `expected` what it comes to."""
    return make_job(tmp_path_factory.mktemp("job"), PEOPLE)


@pytest.fixture(scope="module")
def large_place(tmp_path_factory):
    """A job of so many people that processes are started for it."""
    return make_job(tmp_path_factory.mktemp("large"), 4 * PEOPLE)


def make_job(place: Path, people: int) -> Path:
    german = load_german()
    table = german.features[NUMBERS + LEVELS]
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), LEVELS))
    model = make_pipeline(columns, LogisticRegression()).fit(table, german.approved)
    save_model(model, place / "model.skops", True)
    holdfast.ActionSet.from_data(table, protected=["age"]).save(place / "actions.yaml")
    many = table.sample(people, replace=True, random_state=0)
    many = many.assign(number=range(people)).astype(object)
    many.iloc[700, 0] = "soon"  # a row that cannot be used
    many.to_csv(place / "people.csv", index=False)
    subprocess.run(COMMAND, cwd=place, check=True, capture_output=True)
    (place / "out.parquet").rename(place / "expected.parquet")
    (place / "out.parquet.yaml").rename(place / "expected.yaml")
    return place


@pytest.fixture
def again(place, tmp_path):
    """A copy of the job, to be run in."""
    return copy_job(place, tmp_path)


@pytest.fixture
def large_again(large_place, tmp_path):
    return copy_job(large_place, tmp_path)


def copy_job(place: Path, to: Path) -> Path:
    for name in FILES:
        shutil.copy(place / name, to)
    return to


@pytest.fixture(scope="module")
def zygote():
    command = [sys.executable, "-c", textwrap.dedent(ZYGOTE)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )

    def run(place: Path, calls: int = 0) -> int:
        order = {"place": str(place), "command": COMMAND[3:], "calls": calls}
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield run
    process.stdin.close()
    process.wait()


def check_ended_well(place: Path, again: Path) -> None:
    assert (again / "out.parquet").read_bytes() == (place / "expected.parquet").read_bytes()
    before, after = ((p).read_text() for p in (place / "expected.yaml", again / "out.parquet.yaml"))
    lasting = [line for line in before.splitlines() if "finished:" not in line]
    assert [line for line in after.splitlines() if "finished:" not in line] == lasting
    names = {path.name for path in again.iterdir()}
    files = {*FILES, "out.parquet", "out.parquet.yaml"}
    assert {name for name in names if not name.startswith(".")} == files


def check_nothing_is_half_written(place: Path, again: Path) -> None:
    out, manifest = again / "out.parquet", again / "out.parquet.yaml"
    if out.exists():
        assert out.read_bytes() == (place / "expected.parquet").read_bytes()
    assert out.exists() or not manifest.exists()


@pytest.mark.slow
def test_killed_before_each_call_that_changes_the_disk(place, again, zygote):
    """From the first such call to the last: every state of the disk that a kill can leave."""
    calls, killed = 1, 0
    while True:
        for path in again.iterdir():
            if path.name not in FILES:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        code = zygote(again, calls)
        check_nothing_is_half_written(place, again)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        assert zygote(again) == 0
        check_ended_well(place, again)
        calls += 1 if calls < 12 or killed % 2 else 2
    assert killed > 20


def test_killed_again_and_again_it_still_ends(place, again, zygote):
    """Each run gets a little further before it dies."""
    rng = random.Random(0)
    deaths = 0
    while (code := zygote(again, calls=rng.randint(8, 24))) != 0:
        assert code == -signal.SIGKILL
        deaths += 1
        check_nothing_is_half_written(place, again)
        assert deaths < 200
    assert deaths >= 3
    check_ended_well(place, again)


@pytest.mark.slow
def test_killed_by_the_clock_with_several_processes(large_place, large_again):
    """The real SEVERAL, two processes that work, killed after a random time."""
    rng = random.Random(1)
    for _ in range(3):
        process = subprocess.Popen(
            SEVERAL, cwd=large_again, stdout=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(rng.uniform(1.0, 6.0))
        process.kill()
        process.wait()
        check_nothing_is_half_written(large_place, large_again)
        assert_all_are_gone(process.pid)
    subprocess.run(SEVERAL, cwd=large_again, check=True, stdout=subprocess.DEVNULL)
    check_ended_well(large_place, large_again)


def assert_all_are_gone(session: int) -> None:
    """Nobody of a session works on alone."""
    for _ in range(100):
        alive = []
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                alive.append(status.parent.name)
        if not alive:
            return
        time.sleep(0.1)
    raise AssertionError(f"processes {alive} outlived the one that started them")


@pytest.mark.slow
def test_a_process_that_works_is_killed(large_place, large_again):
    """The kernel may kill one of the processes for its memory: the run stops, and goes on."""
    process = subprocess.Popen(
        SEVERAL, cwd=large_again, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    worker = None
    while worker is None and process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            words = Path(f"/proc/{child}/cmdline").read_text()
            if "spawn_main" in words:
                worker = int(child)
        time.sleep(0.01)
    assert worker is not None
    time.sleep(0.5)
    os.kill(worker, signal.SIGKILL)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 3, said
    assert "the same command" in said
    assert "Traceback" not in said
    subprocess.run(SEVERAL, cwd=large_again, check=True, stdout=subprocess.DEVNULL)
    check_ended_well(large_place, large_again)


def test_interrupted(large_place, large_again):
    process = subprocess.Popen(
        SEVERAL,
        cwd=large_again,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (large_again / "out.parquet.work").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    subprocess.run(COMMAND, cwd=large_again, check=True, stdout=subprocess.DEVNULL)
    check_ended_well(large_place, large_again)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs the rights of root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    "kilobytes",
    [pytest.param(120, marks=pytest.mark.slow), 160, pytest.param(200, marks=pytest.mark.slow)],
)
def test_a_full_disk(place, small_disk, kilobytes):
    copy_job(place, small_disk)
    free = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_bsize - 1024 * kilobytes))
    ended = subprocess.run(COMMAND, cwd=small_disk, capture_output=True, text=True)
    assert ended.returncode == 3, ended.stderr
    assert "the disk is full" in ended.stderr
    assert "run the same command again" in ended.stderr
    check_nothing_is_half_written(place, small_disk)
    (small_disk / "ballast").unlink()
    subprocess.run(COMMAND, cwd=small_disk, check=True, capture_output=True)
    check_ended_well(place, small_disk)


def test_two_runs_at_once_do_not_meet(again):
    (again / "out.parquet.work").mkdir()
    import fcntl

    with open(again / "out.parquet.work" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended = subprocess.run(COMMAND, cwd=again, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "another run is using" in ended.stderr
