"""Mark learners' notebooks: one row for each learner, one column for each exercise.

python tools/mark.py CHAPTER NOTEBOOK.ipynb ... [--csv]

CHAPTER is the book's own (such as two_products).  From a learner's notebook only the
answers are taken, from the cells tagged exercise-stub; everything else, the checks
above all, comes from the book.  Every answer is marked in a process and a folder of its
own.  The answer to an open exercise is read as data in one process and checked in
another.  Learners' code still has the rights of whoever types this: a run that changes
the companion itself is detected, and ends the marking.
"""

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from notebooks import NO_NOTEBOOK, ROOT, BookError, chapters, code_cells, digest, select

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
{setup}
{stub}
try:
    plain = json.dumps({name}(), default=lambda part: part.tolist())
    print("\\n{verdict}" + plain)
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


def companion_stamp() -> str:
    sources = sorted((ROOT / "companion").rglob("*.py"))
    return digest(*(path.read_text(encoding="utf-8") for path in sources))


def run(code: str) -> str:
    """The verdict that some code printed last, run in a process and a folder of its own."""
    before = companion_stamp()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-X", "utf8", "-c", code],  # -I: no modules from here
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            done = None  # told below, once the companion is known to be whole
    if companion_stamp() != before:
        raise BookError(
            "an answer has changed companion/ on this machine: no mark of this run counts. "
            "Restore it with git, and look at the notebooks one by one"
        )
    if done is None:
        return f"{FAILED} it took longer than {SECONDS} s"
    last = [line for line in done.stdout.splitlines() if line.startswith(VERDICT)]
    if last and done.returncode == 0:
        return "".join(c for c in last[-1].removeprefix(VERDICT) if c.isprintable())
    lines = done.stderr.strip().splitlines() or ["it ended without a verdict"]
    return f"{FAILED} {lines[-1][:200]}"


def mark(book: NotebookNode, learner: NotebookNode, label: str) -> str:
    """The verdict on one learner's answer to one exercise."""
    stub = by_exercise(learner, "stub").get(label)
    if stub is None:
        return MISSING
    check = by_exercise(book, "check")[label]
    (name,) = re.findall(r"^def check_(\w+)\(", check, flags=re.MULTILINE)
    setup = "\n".join(cell.source for cell in code_cells(book) if not tag(cell))
    if label not in by_exercise(book, "solution"):  # an open one: its answer is data
        value = run(READ.format(setup=setup, stub=stub, name=name, **WORDS))
        if value.startswith((FAILED, UNTOUCHED)):
            return value
        stub = f"import json\n{name} = lambda: json.loads({value!r})"
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
