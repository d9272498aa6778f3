"""Mark learners' notebooks: one row for each learner, one column for each exercise.

python tools/mark.py CHAPTER NOTEBOOK.ipynb ... [--csv]

CHAPTER is the book's own (such as two_products).  From a learner's notebook only the
answers are taken, from the cells tagged exercise-stub; everything else, the checks
above all, comes from the book.  Every answer is marked in a process of its own, so no
learner's code can reach another's mark.  The answer to an open exercise is read as data
in one process and checked in another: its code is gone before the check begins.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from notebooks import NO_NOTEBOOK, ROOT, BookError, chapters, code_cells, select

SECONDS = 120
PASSED, FAILED, UNTOUCHED, MISSING = "passed", "FAILED", "not attempted", "no answer cell"
VERDICT = "verdict of the check: "

# The marking process: code of the book, but for {stub}, which is the learner's.
MARK = """\
{setup}
exercises.attempt = lambda check, answer: None
{stub}
{check}
try:
    check_{name}({name})
except exercises.NotAttempted:
    print("\\n{verdict}{untouched}")
except BaseException as error:
    reason = " ".join(f"{{type(error).__name__}}: {{error}}".split())
    print("\\n{verdict}{failed} " + reason[:200])
else:
    print("\\n{verdict}{passed}")
"""
# The reading process: it turns the answer to an open exercise into data.
READ = """\
import json
import math

import torch

from companion import exercises

{stub}
try:
    parts = [part.tolist() if hasattr(part, "tolist") else part for part in {name}()]
    print("\\n{verdict}" + json.dumps(parts))
except exercises.NotAttempted:
    print("\\n{verdict}{untouched}")
"""
WORDS = {"verdict": VERDICT, "passed": PASSED, "failed": FAILED, "untouched": UNTOUCHED}


def tag(cell: NotebookNode) -> str:
    """stub, check or solution; empty for a cell that is no exercise's."""
    tags = [t for t in cell.metadata.get("tags", []) if t.startswith("exercise-")]
    return tags[0].removeprefix("exercise-") if tags else ""


def by_exercise(nb: NotebookNode, kind: str) -> dict[str, str]:
    """Source of each exercise's cell of one kind, by label."""
    return {
        str(cell.metadata["exercise"]): str(cell.source)
        for cell in code_cells(nb)
        if tag(cell) == kind and "exercise" in cell.metadata
    }


def run(code: str) -> str:
    """The verdict that some code printed last, run in a process of its own."""
    try:
        done = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", code],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{FAILED} it took longer than {SECONDS} s"
    last = [line for line in done.stdout.splitlines() if line.startswith(VERDICT)]
    if last and done.returncode == 0:
        return last[-1].removeprefix(VERDICT)
    lines = done.stderr.strip().splitlines() or ["it ended without a verdict"]
    return f"{FAILED} {lines[-1][:200]}"


def mark(book: NotebookNode, learner: NotebookNode, label: str) -> str:
    """The verdict on one learner's answer to one exercise."""
    stub = by_exercise(learner, "stub").get(label)
    if stub is None:
        return MISSING
    check = by_exercise(book, "check")[label]
    (name,) = re.findall(r"^def check_(\w+)\(", check, flags=re.MULTILINE)
    if label not in by_exercise(book, "solution"):  # an open one: its answer is data
        value = run(READ.format(stub=stub, name=name, **WORDS))
        if value.startswith((FAILED, UNTOUCHED)):
            return value
        stub = f"import json\n{name} = lambda: json.loads({value!r})"
    setup = "\n".join(cell.source for cell in code_cells(book) if not tag(cell))
    return run(MARK.format(setup=setup, stub=stub, check=check, name=name, **WORDS))


def read(path: Path) -> NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except FileNotFoundError:
        raise BookError(f"{path}: there is no such file") from None
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, *NO_NOTEBOOK) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise BookError(f"{path}: not a notebook ({first})") from None


def marks(chapter: str, paths: list[Path]) -> list[dict[str, str]]:
    """A row for each learner's notebook: its path, and a verdict for each exercise."""
    (found,) = select(chapters(ROOT), [chapter])
    book = read(found.notebook)
    learners = [read(path) for path in paths]
    labels = list(by_exercise(book, "check"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = pool.map(
            lambda pair: mark(book, *pair), [(nb, label) for nb in learners for label in labels]
        )
        return [
            {"notebook": str(path)} | {label: next(verdicts) for label in labels}
            for path in paths
        ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapter", help="the book's chapter, such as two_products")
    parser.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    parser.add_argument("--csv", action="store_true", help="comma-separated, for a spreadsheet")
    options = parser.parse_args(arguments)
    try:
        rows = marks(options.chapter, options.notebooks)
    except BookError as error:
        print(error, file=sys.stderr)
        return 2
    if options.csv:
        writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    else:
        for row in rows:
            print(row.pop("notebook"))
            for label, verdict in row.items():
                print(f"  {label:24} {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
