"""`attempt`: passed, not attempted, or an error, and never one for another."""

import pytest
import torch

from companion.exercises import NotAttempted, attempt


def check(answer) -> None:  # type: ignore[no-untyped-def]
    assert answer() == 2, "not 2"


def stub() -> int:
    raise NotAttempted("return a number")


def test_a_right_answer_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert attempt(check, lambda: 2) is True
    assert capsys.readouterr().out == "passed\n"


def test_an_untouched_stub_is_not_attempted(capsys: pytest.CaptureFixture[str]) -> None:
    assert attempt(check, stub) is False
    assert capsys.readouterr().out == "not attempted\n"


def test_a_wrong_answer_raises_the_checks_own_error() -> None:
    with pytest.raises(AssertionError, match="not 2"):
        attempt(check, lambda: 3)


def test_an_answer_that_breaks_is_not_taken_for_an_untouched_one() -> None:
    with pytest.raises(NotImplementedError, match="Half"):
        attempt(check, lambda: torch.linalg.svdvals(torch.eye(2).half()))
