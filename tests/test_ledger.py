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
import total
from checking import MODULES, ROOT, Tally, relative_error, up_to_power_of_ten

TESTS = """
import pytest, torch
one = torch.ones(2, dtype=torch.float64)

@pytest.mark.equation("eq-a")
@pytest.mark.parametrize("k", range(6))
def test_right(check, k):
    check(one + k * 1e-15, one, route="r")

@pytest.mark.equation("eq-a")
def test_other_route(check):
    check(-one, -one.clone(), route="s", rtol=1e-6, atol=1e-9)

@pytest.mark.equation("eq-a")
def test_too_far(check):
    check(one * (1 + 1e-9), one, route="r")

@pytest.mark.equation("eq-a")
def test_nan(check):
    check(one * float("nan"), one, route="r")

@pytest.mark.equation("eq-a")
def test_itself(check):
    check(one, one, route="r")

@pytest.mark.xfail
@pytest.mark.equation("eq-expected")
def test_expected_failure(check):
    check(one, one.clone(), route="r")
    check(-one, one, route="r")

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
    check(one, one.clone(), route="r")
    check(one, one.clone(), route="r", rtol=1e-3)

@pytest.mark.equation("eq-new")
def test_new(check):
    check(one, one.clone(), route="r")
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
        env=os.environ | {"PYTHONPATH": MODULES, "COLUMNS": "400"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


MUST_FAIL = {
    "test_too_far": "eq-a fails by r",
    "test_nan": "eq-a fails by r",
    "test_itself": "compared with itself",
    "test_float32": "check in float64",
    "test_broadcast": "(1,) against (2,)",
    "test_zero_is_not_almost_zero": "eq-a fails by r",
    "test_never_called": "never called check",
    "test_no_mark": "is marked @pytest.mark.equation",
    "test_two_tolerances": "has one tolerance",
}


def test_what_must_fail_fails_once_and_says_why(tmp_path: Path) -> None:
    done = run(tmp_path, "--measure", "made.json", "-rfE")
    for name, why in MUST_FAIL.items():
        (line,) = [line for line in done.stdout.splitlines() if f"::{name} - " in line]
        assert why in line, name
    summary = done.stdout.splitlines()[-1]
    assert f"{len(MUST_FAIL) - 2} failed" in summary, summary  # two fail in the fixture
    assert "2 errors" in summary
    assert not (tmp_path / "made.json").exists(), "no ledger is written from a failing run"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_cases_and_errors_are_merged_across_workers(tmp_path: Path, workers: str) -> None:
    chosen = "right or other_route or new or expected"
    done = run(tmp_path, "-n", workers, "--measure", "made.json", "-k", chosen)
    assert done.returncode == 0, done.stdout
    made = json.loads((tmp_path / "made.json").read_text(encoding="utf-8"))
    assert made["eq-a"]["routes"]["r"] == {
        "cases": 6, "rtol": 1e-10, "atol": 0.0, "largest_error": 1e-14,
    }  # fmt: skip
    assert made["eq-a"]["routes"]["s"] == {
        "cases": 1, "rtol": 1e-6, "atol": 1e-9, "largest_error": 0.0,
    }  # fmt: skip
    assert list(made) == ["eq-a", "eq-new"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:  # type: ignore[type-arg]
    """The ledger that the tests of the book's equations make now."""
    path = tmp_path_factory.mktemp("ledger") / "checked.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "tests/test_equations.py",
            "-q",
            "--measure",
            str(path),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def committed() -> dict[str, dict]:  # type: ignore[type-arg]
    return json.loads((ROOT / "book/checked.json").read_text(encoding="utf-8"))


def test_the_claims_in_the_text_are_the_claims_checked(measured: dict[str, dict]) -> None:  # type: ignore[type-arg]
    checked, written = set(measured), set(ledger.equations_in_text(ROOT))
    assert written - checked == set(), (
        "no test marked @pytest.mark.equation(label) checks these"
    )
    assert checked - written == set(), "tests of claims that the text no longer makes"


def test_the_ledger_is_what_the_tests_find(
    measured: dict[str, dict],  # type: ignore[type-arg]
    committed: dict[str, dict],  # type: ignore[type-arg]
) -> None:
    """Routes, cases and tolerances to the letter; errors may be one power of ten off."""
    assert set(committed) == set(measured), "type: make ledger"
    for label, entry in measured.items():
        assert set(committed[label]["routes"]) == set(entry["routes"]), f"{label}: make ledger"
        for route, now in entry["routes"].items():
            then = dict(committed[label]["routes"][route])
            now, found, stated = dict(now), now["largest_error"], then.pop("largest_error")
            now.pop("largest_error")
            assert now == then, f"{label} by {route}; type: make ledger"
            assert found <= 10 * max(stated, 1e-16), f"{label} by {route}; type: make ledger"


def test_no_formula_changed_since_it_was_checked(committed: dict[str, dict]) -> None:  # type: ignore[type-arg]
    """A check can't read TeX: whoever changes a formula looks at its test, and says so."""
    for label, formula in ledger.formulas_in_text(ROOT).items():
        assert committed[label]["formula"] == formula, (
            f"{label} is written differently now: see that its test in tests/test_equations.py "
            "still computes what it says, then type: make ledger"
        )


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
    assert relative_error(torch.zeros(1), torch.zeros(1)) == 0
    assert relative_error(torch.zeros(0), torch.zeros(0)) == 0


def test_only_the_table_between_the_marks_is_replaced() -> None:
    page = "before\n% ledger: begin (why)\n\nold\n% ledger: end\nafter\n"
    want = "before\n% ledger: begin (why)\n\nnew\n\n% ledger: end\nafter\n"
    assert ledger.with_table(page, "new\n") == want
    with pytest.raises(ValueError, match="must both stand"):
        ledger.with_table("no marks", "new")


def test_the_total_counts_every_report_and_a_missing_one_as_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, suite in {
        "a": 'tests="9" failures="1" errors="2" skipped="3"',
        "b": 'tests="4" failures="0" errors="0" skipped="0"',
        "c": 'tests="2" failures="0" errors="0" skipped="1"',
    }.items():
        text = f"<testsuites><testsuite {suite}></testsuite></testsuites>"
        (tmp_path / name).write_text(text, encoding="utf-8")
    a, b, c, none = (str(tmp_path / name) for name in ("a", "b", "c", "none"))
    for reports, line, status in [
        ([a, b], "7 passed, 3 failed, 3 skipped", 1),
        ([b], "4 passed, 0 failed", 0),
        ([c], "1 passed, 0 failed, 1 skipped", 1),
        ([b, none], "4 passed, 1 failed", 1),
        ([], "0 passed, 0 failed", 1),
    ]:
        assert total.main(reports) == status
        printed = capsys.readouterr()
        assert printed.out.splitlines()[-1] == line
        assert ("no report" in printed.err) == (none in reports)
