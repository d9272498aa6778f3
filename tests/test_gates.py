"""What nbval and the root conftest must catch: one notebook for each kind of fault."""

import base64
import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import nbformat
import numpy as np
import pytest
from checking import MODULES, ROOT
from nbformat import NotebookNode
from PIL import Image

from companion import figures

DRAW = """\
from IPython.display import Image, display
from companion import figures
display(Image(figures.matrices({{"{title}": [[1.0, 2.0]]}}).png))"""


def code(source: str, *outputs: NotebookNode, tags: tuple[str, ...] = ()) -> NotebookNode:
    cell = nbformat.v4.new_code_cell(source, outputs=list(outputs), execution_count=1)
    cell.metadata["tags"] = list(tags)
    return cell


def printed(text: str) -> NotebookNode:
    return nbformat.v4.new_output("stream", name="stdout", text=text)


def result(text: str, **more: str) -> NotebookNode:
    data = {"text/plain": text} | more
    return nbformat.v4.new_output("execute_result", data=data, execution_count=1)


def picture(title: str, **size: int) -> NotebookNode:
    png = base64.b64encode(figures.matrices({title: [[1.0, 2.0]]}).png).decode()
    data = {"image/png": png, "text/plain": "<IPython.core.display.Image object>"}
    metadata = {"image/png": size} if size else {}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata)


def error(name: str, value: str) -> NotebookNode:
    return nbformat.v4.new_output("error", ename=name, evalue=value, traceback=[])


def never_run() -> NotebookNode:
    cell = nbformat.v4.new_code_cell("x = 1")
    cell.execution_count = None
    return cell


RAISES = ("raises-exception",)
HONEST = {
    "honest_text": code("print(0.25)", printed("0.25\n")),
    "honest_figure": code(DRAW.format(title="rate 0.12"), picture("rate 0.12")),
    "honest_error": code("1 / 0", error("ZeroDivisionError", "division by zero"), tags=RAISES),
}
# name: (the cell, words of the message)
FAULTY = {
    "stale_output": (code("print(2)", printed("1\n")), "outputs differ"),
    "drifted_number": (code("print(0.123457)", printed("0.123456\n")), "outputs differ"),
    "no_stored_output": (code("print(1)"), "outputs differ"),
    "never_run": (never_run(), "never run"),
    "wrong_digit_in_a_title": (
        code(DRAW.format(title="rate 0.12"), picture("rate 0.13")),
        "Figure 1 is not the stored one",
    ),
    "figure_not_stored": (
        code(
            DRAW.format(title="a"),
            nbformat.v4.new_output(
                "display_data", data={"text/plain": "<IPython.core.display.Image object>"}
            ),
        ),
        "1 figures were drawn; 0 are stored",
    ),
    "should_raise": (code("x = 1", tags=RAISES), "it did not raise"),  # case Q01
    "raises_another": (
        code("int('a')", error("ZeroDivisionError", "division by zero"), tags=RAISES),
        "outputs differ",
    ),
    "raises_untagged": (code("1 / 0"), "caused an exception"),
    "outputs_swapped": (
        code("print(1)\n2", result("2"), printed("1\n")),
        "outputs have another form",
    ),
    "another_size": (
        code(DRAW.format(title="a"), picture("a", width=9)),
        "outputs have another form",
    ),
    "jpeg": (code("1", result("1", **{"image/jpeg": "x"})), "stores image/jpeg"),
    "overwritten_text": (code("print(1)", printed("9 explodes\r1\n")), "overwrites itself"),
    "on_stderr": (code("import sys\nprint('w', file=sys.stderr)"), "outputs differ"),
    "semicolon": (code("1;"), "trailing `;`"),
    "ignored_by_tag": (
        code("print(2)", printed("1\n"), tags=("nbval-ignore-output",)),
        "`nbval-ignore-output` would hide",
    ),
    "ignored_by_comment": (
        code("# NBVAL_IGNORE_OUTPUT\nprint(2)", printed("1\n")),
        "`nbval-ignore-output` would hide",
    ),
    "skipped_by_tag": (code("print(2)", printed("1\n"), tags=("nbval-skip",)), "would hide"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], str]:
    """Failures of each notebook in one nbval run, and what was printed."""
    folder = tmp_path_factory.mktemp("gates")
    cells = HONEST | {name: cell for name, (cell, _) in FAULTY.items()}
    for name, cell in cells.items():
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / f"{name}.ipynb")
    report = folder / "report.xml"
    flags = ["--nbval", "--nbval-current-env", "--color=no", "-p", "no:cacheprovider"]
    settings = ["-p", "conftest", "-c", "pyproject.toml", "--rootdir", str(folder)]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            str(folder),
            *settings,
            *flags,
            f"--junitxml={report}",
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": MODULES},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    failures: dict[str, list[str]] = {name: [] for name in cells}
    for case in ET.parse(report).iter("testcase"):
        name = case.get("classname", "").removesuffix(".ipynb")
        failures[name] += [f"{f.get('message')}\n{f.text}" for f in case.findall("failure")]
    return failures, done.stdout


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_notebook_passes(run: tuple[dict[str, list[str]], str], name: str) -> None:
    failures, _ = run
    assert failures[name] == []


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_notebook_fails_and_says_what_to_type(
    run: tuple[dict[str, list[str]], str], name: str
) -> None:
    failures, output = run
    assert len(failures[name]) == 1
    assert FAULTY[name][1] in failures[name][0]
    assert f"make notebooks CHAPTER={name}" in output


def noisy(png: bytes, levels: int) -> bytes:
    """The same picture, each channel of each pixel off by up to some levels."""
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), int)
    noise = np.random.default_rng(0).integers(-levels, levels + 1, pixels.shape)
    file = io.BytesIO()
    Image.fromarray((pixels + noise).clip(0, 255).astype("uint8")).save(file, "PNG")
    return file.getvalue()


def test_pixels_are_compared_by_tiles(pytestconfig: pytest.Config) -> None:
    gate = next(p for p in pytestconfig.pluginmanager.get_plugins()
                if hasattr(p, "largest_tile_difference"))  # fmt: skip
    a, b = (figures.matrices({f"rate 0.{n}": [[1.0]]}).png for n in (13, 18))
    wide = figures.matrices({"a": [[1.0]]}, columns=2).png
    assert gate.largest_tile_difference(a, a) == 0
    assert gate.largest_tile_difference(a, b) > 3 * gate.TILE_TOLERANCE
    assert gate.largest_tile_difference(a, noisy(a, 1)) < gate.TILE_TOLERANCE
    assert gate.largest_tile_difference(a, wide) == float("inf")
