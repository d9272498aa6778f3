"""The `check` fixture, the ledger and the total: what must fail, fails."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import ledger
import pytest
import torch
from checking import ROOT, Tally, relative_error, up_to_power_of_ten
from total import total

TESTS = """
import pytest, torch
one = torch.ones(2, dtype=torch.float64)

@pytest.mark.equation("eq-a")
@pytest.mark.parametrize("k", range(6))
def test_right(check, k):
    check(one + k * 1e-15, one, route="r")

@pytest.mark.equation("eq-a")
def test_other_route(check):
    check(one, one, route="s", rtol=1e-6, atol=1e-9)

@pytest.mark.equation("eq-a")
def test_too_far(check):
    check(one * (1 + 1e-9), one, route="r")

@pytest.mark.equation("eq-a")
def test_nan(check):
    check(one * float("nan"), one, route="r")

@pytest.mark.equation("eq-a")
def test_float32(check):
    check(one.float(), one.float(), route="r")

@pytest.mark.equation("eq-a")
def test_broadcast(check):
    check(one[:1], one, route="r")

@pytest.mark.equation("eq-a")
def test_zero_is_not_almost_zero(check):
    check(one * 1e-30, one * 0, route="r")

@pytest.mark.equation("eq-a")
def test_never_called(check):
    pass

def test_no_mark(check):
    pass

@pytest.mark.equation("eq-a")
def test_two_tolerances(check):
    check(one, one, route="r")
    check(one, one, route="r", rtol=1e-3)

@pytest.mark.equation("eq-new")
def test_not_in_the_ledger(check):
    check(one, one, route="r")
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(TESTS, encoding="utf-8")
    # A root of its own, so that this project's own conftest stays out.
    (folder / "pytest.ini").write_text(
        "[pytest]\nmarkers = equation\naddopts = -p checking -p no:cacheprovider\n",
        encoding="utf-8",
    )
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_what_must_fail_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "--ledger", "made.json", "-rA")
    outcome = {
        line.split("::")[1].split(" ")[0].split("[")[0]: line.split(" ")[0]
        for line in done.stdout.splitlines()
        if "test_it.py::" in line
    }
    passed = {name for name, word in outcome.items() if word == "PASSED"}
    assert passed - {n for n in passed if "ERROR" in outcome[n]} >= {"test_right"}
    for name in (
        "test_too_far",
        "test_nan",
        "test_float32",
        "test_broadcast",
        "test_zero_is_not_almost_zero",
        "test_never_called",
        "test_no_mark",
        "test_two_tolerances",
    ):
        assert outcome[name] in ("FAILED", "ERROR"), name
    assert not (tmp_path / "made.json").exists(), "no ledger is written from a failing run"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_cases_and_errors_are_merged_across_workers(tmp_path: Path, workers: str) -> None:
    chosen = "right or other_route or not_in_the_ledger"
    done = run(tmp_path, "-n", workers, "--ledger", "made.json", "-k", chosen)
    assert done.returncode == 0, done.stdout
    made = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
    assert made["eq-a"]["r"] == {
        "cases": 6, "rtol": 1e-10, "atol": 0.0, "largest_error": 1e-14,
    }  # fmt: skip
    assert made["eq-a"]["s"] == {
        "cases": 1, "rtol": 1e-6, "atol": 1e-9, "largest_error": 0.0,
    }  # fmt: skip
    assert list(made) == ["eq-a", "eq-new"]


def test_an_equation_that_is_not_in_the_ledger_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "-k", "not_in_the_ledger")
    assert done.returncode == 1
    assert "eq-new by r is not in checked.json; type: make ledger" in done.stdout


def test_one_route_has_one_tolerance() -> None:
    with pytest.raises(ValueError, match="one tolerance"):
        Tally(1, 1e-10, 0.0, 0.0).merge(Tally(1, 1e-9, 0.0, 0.0))


@pytest.mark.parametrize(
    ("error", "shown"), [(0.0, 0.0), (1e-15, 1e-15), (1.1e-15, 1e-14), (9.9e-3, 1e-2)]
)
def test_errors_are_rounded_up(error: float, shown: float) -> None:
    assert up_to_power_of_ten(error) == shown


def test_errors_are_relative_to_the_largest_entry() -> None:
    want = torch.tensor([1.0, -4.0])
    assert relative_error(torch.tensor([1.0, -3.0]), want) == 0.25
    assert relative_error(want, want) == 0
    assert relative_error(torch.ones(1), torch.zeros(1)) == math.inf


def test_only_the_table_between_the_marks_is_replaced() -> None:
    page = "before\n% ledger: begin (why)\n\nold\n% ledger: end\nafter\n"
    want = "before\n% ledger: begin (why)\n\nnew\n\n% ledger: end\nafter\n"
    assert ledger.with_table(page, "new\n") == want
    with pytest.raises(ValueError, match="must both stand"):
        ledger.with_table("no marks", "new")


def test_the_total_counts_every_report_and_a_missing_one_as_a_failure(tmp_path: Path) -> None:
    for name, suite in {
        "a": 'tests="9" failures="1" errors="2" skipped="3"',
        "b": 'tests="4" failures="0" errors="0" skipped="0"',
    }.items():
        text = f"<testsuites><testsuite {suite}></testsuite></testsuites>"
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert total([tmp_path / "a", tmp_path / "b"]) == (7, 3, 3)
    assert total([tmp_path / "b", tmp_path / "none"]) == (4, 1, 0)
