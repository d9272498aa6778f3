"""A pytest plugin, the `check` fixture: one equation, by a second route, over many cases.

A test marked `@pytest.mark.equation("eq-idea")` calls `check(got, want, route=...)`
once for each case.  `--measure FILE` writes the cases and the largest errors: that is
how `make ledger` makes book/checked.json, with a digest of each formula as it stood.
"""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
import torch
from hypothesis import HealthCheck, settings
from ledger import formulas_in_text
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
# For a pytest that does not read this project's settings.
MODULES = os.pathsep.join(str(ROOT / folder) for folder in ("tests", "tools"))

# The same cases on every machine and in every run, however slow it is.
settings.register_profile(
    "book",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("book")


@dataclass
class Tally:
    """What the ledger keeps of one route of one equation."""

    cases: int
    rtol: float
    atol: float
    largest_error: float

    def merge(self, other: "Tally") -> None:
        if (self.rtol, self.atol) != (other.rtol, other.atol):
            raise ValueError("one route of one equation has one tolerance")
        self.cases += other.cases
        self.largest_error = max(self.largest_error, other.largest_error)


Tallies = dict[str, dict[str, Tally]]  # label -> route -> tally
TALLIES = pytest.StashKey[Tallies]()


class Check(Protocol):
    def __call__(
        self, got: Tensor, want: Tensor, *, route: str, rtol: float = 1e-10, atol: float = 0.0
    ) -> None: ...


def relative_error(got: Tensor, want: Tensor) -> float:
    """Largest difference over largest size: 0 / 0 is 0, and nan is inf."""
    if want.numel() == 0 or torch.equal(got, want):
        return 0.0
    size = want.abs().max().item()
    difference = (got - want).abs().max().item()
    error = difference / size if size else math.inf
    return math.inf if math.isnan(error) else error


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Iterator[Check]:
    """Compare one case of the marked equation with a second route (float64, relative)."""
    marker = request.node.get_closest_marker("equation")
    if marker is None:
        pytest.fail("a test that uses `check` is marked @pytest.mark.equation('eq-...')")
    label = marker.args[0]
    mine: dict[str, Tally] = {}

    def one_case(
        got: Tensor, want: Tensor, *, route: str, rtol: float = 1e-10, atol: float = 0.0
    ) -> None:
        assert got is not want, f"{label}: a thing compared with itself"
        assert got.dtype == want.dtype == torch.float64, f"{label}: check in float64"
        assert got.shape == want.shape, (
            f"{label}: {tuple(got.shape)} against {tuple(want.shape)}"
        )
        got, want = got.detach(), want.detach()
        error = relative_error(got, want)
        size = want.abs().max().item() if want.numel() else 0.0
        within = error == 0.0 or error <= rtol + (atol / size if size else 0.0)
        assert within, (
            f"{label} fails by {route}: relative error {error:.1e}, allowed {rtol:.0e}"
        )
        mine.setdefault(route, Tally(0, rtol, atol, 0.0)).merge(Tally(1, rtol, atol, error))

    yield one_case
    if getattr(request.node, "call_failed", False):
        return
    assert mine, f"{label}: this test never called check(...)"
    merge_into(request.config.stash[TALLIES], {label: mine})


def merge_into(total: Tallies, more: Tallies) -> None:
    for label, routes in more.items():
        for route, tally in routes.items():
            known = total.setdefault(label, {})
            if route in known:
                known[route].merge(tally)
            else:
                known[route] = Tally(**vars(tally))


def up_to_power_of_ten(error: float) -> float:
    return 0.0 if error == 0.0 else float(f"1e{math.ceil(math.log10(error))}")


def write_ledger(path: Path, tallies: Tallies) -> None:
    """Each label with its formula's digest, and each route with what was measured."""
    formulas = formulas_in_text(ROOT)
    entries = {
        label: {
            "formula": formulas.get(label),
            "routes": {
                route: vars(tally) | {"largest_error": up_to_power_of_ten(tally.largest_error)}
                for route, tally in sorted(routes.items())
            },
        }
        for label, routes in sorted(tallies.items())
    }
    path.write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8", newline="\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--measure", metavar="FILE", help="write the checked equations to FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TALLIES] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    if report.when == "call":
        # An expected failure is one too: its cases must not count.
        item.call_failed = report.outcome != "passed"  # type: ignore[attr-defined]
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    tallies = session.config.stash[TALLIES]
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist
        plain = {k: {r: vars(t) for r, t in routes.items()} for k, routes in tallies.items()}
        session.config.workeroutput["tallies"] = plain
    elif session.config.getoption("--measure") and exitstatus == 0:
        write_ledger(Path(session.config.getoption("--measure")), tallies)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add a worker's tallies to the controller's."""
    plain = getattr(node, "workeroutput", {}).get("tallies", {})
    merge_into(
        node.config.stash[TALLIES],
        {k: {r: Tally(**t) for r, t in routes.items()} for k, routes in plain.items()},
    )
