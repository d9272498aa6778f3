"""What nbval does not see in a notebook, added to it.

nbval compares texts.  Here: figures by their pixels, cells that were never run,
cells meant to raise that do not, marks that would switch the comparison off;
and after each failure, what to type next.
"""

import base64
import io
import re
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
from nbformat import NotebookNode
from nbval.plugin import IPyNbCell
from PIL import Image

pytest_plugins = ["checking"]  # the `check` fixture and the ledger

TILE = 16
# The largest mean difference of a tile, of 255.  A rounding of the same figure on
# another processor moves a few pixels by a few levels; one digit moves a tile by 20.
TILE_TOLERANCE = 3.0
COMPARED = {
    "text/plain", "text/html", "text/latex", "image/svg+xml", "image/png",
    "application/vnd.jupyter.widget-view+json",
}  # fmt: skip
# What would switch the comparison off, as a tag or as a comment in the cell.
SILENCERS = (
    "nbval-ignore-output",
    "pytest-validate-ignore-output",
    "nbval-skip",
    "nbval-raises-exception",
    "nbval-check-output",
    "skip-execution",
)


def largest_tile_difference(a: bytes, b: bytes) -> float:
    """Largest mean absolute difference over 16 x 16 tiles of two PNGs, in RGBA.

    inf where the sizes differ.  Tiles overlap by half, so that a small mark
    that straddles an edge still fills one of them.
    """
    x, y = (np.asarray(Image.open(io.BytesIO(p)).convert("RGBA"), float) for p in (a, b))
    if x.shape != y.shape:
        return float("inf")
    difference = np.abs(x - y).max(axis=2)
    pad = [(0, -n % TILE + TILE) for n in difference.shape]
    half = TILE // 2
    quarters = np.pad(difference, pad)
    rows, columns = (n // half for n in quarters.shape)
    quarters = quarters.reshape(rows, half, columns, half).mean(axis=(1, 3))
    tiles = (quarters[:-1, :-1] + quarters[1:, :-1] + quarters[:-1, 1:] + quarters[1:, 1:]) / 4
    return float(tiles.max())


def figures(outputs: list[NotebookNode]) -> list[bytes]:
    """The PNGs of a cell's outputs, in order."""
    found = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    return [base64.b64decode("".join(png)) for png in found]


def form(outputs: list[NotebookNode]) -> list[tuple[object, ...]]:
    """Kind, MIME types and metadata of each output, in order: nbval compares none of it."""
    return [
        (o.output_type, o.get("name"), sorted(o.get("data", {})), dict(o.get("metadata", {})))
        for o in outputs
    ]


def unreadable(outputs: list[NotebookNode]) -> list[str]:
    """What is stored but would not be compared, or not be seen as it is compared."""
    types = {mime for o in outputs for mime in o.get("data", {})} - COMPARED
    texts = [o.text for o in outputs if "text" in o]
    overwritten = any(re.search("[\r\b]", text) for text in texts)
    return sorted(types) + (["text that overwrites itself"] if overwritten else [])


def silencers(cell: NotebookNode) -> list[str]:
    """Marks in a cell that would keep nbval from comparing it."""
    comments = (
        line.strip().lstrip("# ").strip().lower().replace("_", "-")
        for line in cell.source.splitlines()
        if line.strip().startswith("#")
    )
    return [mark for mark in (*cell.metadata.get("tags", []), *comments) if mark in SILENCERS]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    if not isinstance(item, IPyNbCell):
        return (yield)
    cell = item.cell
    if marks := silencers(cell):
        item.raise_cell_error(f"`{marks[0]}` would hide this output from the comparison")
    if cell.execution_count is None:
        item.raise_cell_error("This cell was never run: it has no output to compare")
    if cell.source.rstrip().endswith(";"):
        item.raise_cell_error("A trailing `;` hides this cell's output: remove it")
    if found := unreadable(cell.outputs):
        item.raise_cell_error(f"This cell stores {found[0]}, which nothing would compare")
    result = yield
    outputs = item.test_outputs or []
    if item.options["check_exception"] and all(o.output_type != "error" for o in outputs):
        item.raise_cell_error("This cell is tagged raises-exception, and it did not raise")
    stored, made = figures(cell.outputs), figures(outputs)
    if len(stored) != len(made):
        item.raise_cell_error(f"{len(made)} figures were drawn; {len(stored)} are stored")
    if form(cell.outputs) != form(outputs):
        item.raise_cell_error(
            f"The outputs have another form: stored {form(cell.outputs)}, made {form(outputs)}"
        )
    for number, (a, b) in enumerate(zip(stored, made, strict=True), start=1):
        difference = largest_tile_difference(a, b)
        if difference > TILE_TOLERANCE:
            item.raise_cell_error(
                f"Figure {number} is not the stored one: a tile of {TILE} x {TILE} pixels "
                f"differs by {difference:.1f} of 255 (allowed: {TILE_TOLERANCE})"
            )
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if isinstance(item, IPyNbCell) and report.failed:
        name = item.path.stem
        report.sections.append(
            (
                "What to do next",
                "If the page should not have changed, mend the code or the text.\n"
                f"If it should: make notebooks CHAPTER={name}\n"
                "Then look at the change: git diff book/notebooks",
            )
        )
    return report
