"""What the cells of an exercise use: the stub raises it, the check cell calls it last."""

from collections.abc import Callable
from typing import Any


class NotAttempted(NotImplementedError):  # noqa: N818 (it is no error)
    """What an untouched stub raises: torch has NotImplementedErrors of its own."""


def attempt(check: Callable[[Callable[..., Any]], None], answer: Callable[..., Any]) -> bool:
    """Print whether an answer passes its check; True if it does.

    An untouched stub is not an error: "Run all" goes on, and the result is False.
    A wrong answer raises the check's own AssertionError, and an answer that breaks
    raises whatever it raised.
    """
    try:
        check(answer)
    except NotAttempted:
        print("not attempted")
        return False
    print("passed")
    return True
