"""One way from text to page: text/NAME.md -> executed once -> notebooks/NAME.ipynb.

    python tools/notebooks.py run [NAME ...] [--force]
    python tools/notebooks.py check

`run` executes the chapters whose code, or whose companion code, changed since
their outputs were made; a chapter whose prose alone changed keeps its outputs.
`check` starts no kernel: it fails where a notebook is not what its text says.
A notebook that somebody edited by hand is not overwritten without --force.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from jupytext.myst import MystMetadataParsingError, myst_to_notebook
from labels import duplicates, scan
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
AGAIN = "type: make notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
SECONDS_PER_CELL = 300
# Others would hide an output from the reader, or from the comparison.
TAGS = {"hide-input", "raises-exception"}


class BookError(Exception):
    """Something an author can mend; the message says where and how."""


@dataclass(frozen=True)
class Chapter:
    """A chapter's two files, under one project folder."""

    root: Path
    name: str

    @property
    def text(self) -> Path:
        return self.root / "book/text" / f"{self.name}.md"

    @property
    def notebook(self) -> Path:
        return self.root / "book/notebooks" / f"{self.name}.ipynb"

    def place(self, path: Path, line: int | None = None) -> str:
        shown = path.relative_to(self.root).as_posix()
        return shown if line is None else f"{shown}:{line}"


def chapters(root: Path) -> list[Chapter]:
    """Every chapter that has a text, by name."""
    texts = root / "book/text"
    names = (p.relative_to(texts).with_suffix("").as_posix() for p in texts.rglob("*.md"))
    return [Chapter(root, name) for name in sorted(names)]


# ---------------------------------------------------------------- text -> cells


def expected_notebook(chapter: Chapter) -> NotebookNode:
    """The notebook that the text describes, without outputs."""
    text = read_text(chapter)
    try:
        nb = myst_to_notebook(text)
    except (MystMetadataParsingError, yaml.YAMLError) as error:
        told = re.search(r"at line (\d+)", str(error))
        place = chapter.place(chapter.text, int(told[1]) if told else 1)
        raise BookError(f"{place}: {' '.join(str(error).split())}") from None
    unknown = set(nb.metadata) - {"jupytext", "kernelspec", "jupyter"}
    if unknown:
        place = chapter.place(chapter.text, 1)
        raise BookError(f"{place}: the header's `{min(unknown)}` would be dropped; remove it")
    if nb.metadata.get("kernelspec", {}).get("name") != KERNEL["name"]:
        raise BookError(
            f"{chapter.place(chapter.text, 1)}: the header must name the kernel python3 "
            "and the format myst: copy the first lines of another chapter"
        )
    made_by = {"code": code_stamp(nb, chapter.root), "text": cells_stamp(nb)}
    nb.metadata = nbformat.from_dict({"kernelspec": KERNEL, "made_by": made_by})
    seen: dict[str, int] = {}
    for cell in nb.cells:
        identity = digest(cell.cell_type, cell.source)[:12]
        seen[identity] = seen.get(identity, 0) + 1
        cell.id = identity if seen[identity] == 1 else f"{identity}-{seen[identity]}"
    nb.nbformat, nb.nbformat_minor = 4, 5
    return nb


def read_text(chapter: Chapter) -> str:
    try:
        return chapter.text.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = chapter.text.read_bytes()[: error.start].count(b"\n") + 1
        place = chapter.place(chapter.text, line)
        raise BookError(f"{place}: not UTF-8 ({error.reason}); save it as UTF-8") from None


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def code_cells(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def cells_stamp(nb: NotebookNode) -> str:
    """A digest of what was typed: kinds and sources of the cells."""
    return digest(*(part for cell in nb.cells for part in (cell.cell_type, cell.source)))[:16]


def hand_edit(nb: NotebookNode) -> bool:
    """Whether the cells are no longer those that this tool wrote."""
    return nb.metadata.get("made_by", {}).get("text") != cells_stamp(nb)


# ------------------------------------------------- which code made the outputs


def code_stamp(nb: NotebookNode, root: Path) -> str:
    """A digest of the cells and of the companion code that they reach."""
    cells = [json.dumps([c.source, c.metadata.get("tags", [])]) for c in code_cells(nb)]
    imported = modules_imported((c.source for c in code_cells(nb)), root)
    modules = [f"{p.relative_to(root).as_posix()} {content(p)}" for p in imported]
    return digest(*cells, *modules)[:16]


def content(path: Path) -> str:
    """What a file can do: its syntax tree, or its text if it isn't Python."""
    text = path.read_text(encoding="utf-8")
    return canonical(ast.parse(text)) if path.suffix == ".py" else text


def canonical(node: object) -> str:
    """A syntax tree as text, docstrings aside, the same on every Python version."""
    if isinstance(node, list):
        return "[" + ",".join(map(canonical, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node)}
    body = fields.get("body")
    if isinstance(body, list) and body and is_docstring(node, body[0]):
        fields["body"] = body[1:]
    # Newer versions add fields that are empty where the syntax is old.
    kept = (f"{k}={canonical(v)}" for k, v in fields.items() if v not in (None, []))
    return f"{type(node).__name__}({','.join(kept)})"


def is_docstring(owner: ast.AST, first: ast.stmt) -> bool:
    return (
        isinstance(owner, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )


def modules_imported(sources: Iterable[str], root: Path) -> list[Path]:
    """The companion files that the sources import, directly or not."""
    found: set[Path] = set()
    todo = [name for source in sources for name in companion_names(source, "")]
    while todo:
        for path in files_of(todo.pop(), root):
            if path not in found:
                found.add(path)
                if path.suffix == ".py":
                    package = ".".join(path.relative_to(root).parent.parts)
                    todo += companion_names(path.read_text(encoding="utf-8"), package)
    return sorted(found)


def companion_names(source: str, package: str) -> list[str]:
    """Dotted names under `companion` that a source imports; relative ones resolved."""
    try:
        tree = ast.parse(source)
    except SyntaxError:  # `check` refuses such a cell
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(parents if node.level else []), node.module or ""]).strip(".")
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == "companion"]


def files_of(name: str, root: Path) -> list[Path]:
    """The files that importing a dotted name runs, and a package's browser modules."""
    files: list[Path] = []
    path = root
    for part in name.split("."):
        path = path / part
        if path.is_dir():
            files += [path / "__init__.py", *path.glob("*.js")]
        files.append(path.with_suffix(".py"))
    return [file for file in files if file.is_file()]


# ------------------------------------------------------------------------- run


def run(root: Path, names: list[str], force: bool) -> int:
    """Execute what is stale, write what changed; the number of chapters that failed."""
    from tqdm import tqdm

    todo = [(c, expected_notebook(c)) for c in select(chapters(root), names)]
    bar = tqdm(todo, unit="chapter", disable=None, file=sys.stderr)
    executed = rewritten = failed = 0
    for chapter, nb in bar:
        bar.set_description(chapter.name)
        try:
            if not force:
                refuse_hand_edits(chapter)
            keeps = not code_cells(nb) or (not force and keep_outputs(chapter, nb))
            if not keeps:
                execute(chapter, nb)
        except BookError as error:
            failed += 1
            bar.write(f"{error}\n(the notebook is left as it was)", file=sys.stderr)
            continue
        changed = write(chapter, nb)
        executed += not keeps
        rewritten += keeps and changed
    bar.close()
    same = len(todo) - executed - rewritten - failed
    print(
        f"{executed} executed, {rewritten} changed in prose alone, "
        f"{same} up to date, {failed} failed"
    )
    return failed


def refuse_hand_edits(chapter: Chapter) -> None:
    try:
        old = read_notebook(chapter)
    except BookError:  # not a notebook any more: there is nothing in it to lose
        return
    if old is not None and hand_edit(old):
        raise BookError(f"{chapter.place(chapter.notebook)}: {edited(chapter)}")


def edited(chapter: Chapter) -> str:
    name = chapter.name.rpartition("/")[2]
    return (
        "edited by hand since it was made. To keep your edits, save a copy elsewhere; "
        f"to have them in the book, make them in book/text/{chapter.name}.md; "
        f"to throw them away: make notebooks CHAPTER={name}"
    )


def select(every: list[Chapter], names: list[str]) -> list[Chapter]:
    """The chapters meant: by name, by last part of the name, or by either file's path."""
    chosen = []
    for name in names:
        stem = re.sub(r"^.*book/(text|notebooks)/|\.(md|ipynb)$", "", Path(name).as_posix())
        hits = [c for c in every if stem in (c.name, c.name.rpartition("/")[2])]
        if not hits:
            known = ", ".join(c.name for c in every)
            raise BookError(f"no chapter is called {name!r}; there are: {known}")
        chosen += hits
    return chosen or every


def keep_outputs(chapter: Chapter, nb: NotebookNode) -> bool:
    """Carry the outputs over if the same code made them."""
    try:
        old = read_notebook(chapter)
    except BookError:
        return False
    if old is None or old.metadata.get("made_by", {}).get("code") != nb.metadata.made_by.code:
        return False
    pairs = list(zip(code_cells(nb), code_cells(old), strict=False))
    if len(pairs) != len(code_cells(nb)) or any(b.execution_count is None for _, b in pairs):
        return False
    for new, before in pairs:
        new.outputs, new.execution_count = before.outputs, before.execution_count
    if "widgets" in old.metadata and shows_widgets(old):
        nb.metadata["widgets"] = old.metadata["widgets"]
    return True


def execute(chapter: Chapter, nb: NotebookNode) -> None:
    """Run every cell in a new kernel, in the notebook's own folder."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    chapter.notebook.parent.mkdir(parents=True, exist_ok=True)
    client = NotebookClient(
        nb,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--log-level=40"],  # errors only
        resources={"metadata": {"path": str(chapter.notebook.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reached = sum(c.execution_count is not None for c in code_cells(nb))
        cell = code_cells(nb)[max(reached - 1, 0)]
        where = chapter.place(chapter.text, line_of(chapter.text, cell.source))
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()
        raise BookError(f"{where}: this cell failed\n{plain}") from None
    tidy(nb)


def line_of(text: Path, source: str) -> int | None:
    """The line of the text at which a cell's source starts."""
    before, found, _ = text.read_text(encoding="utf-8-sig").partition(source)
    return before.count("\n") + 1 if found else None


def tidy(nb: NotebookNode) -> None:
    """Drop what differs between two runs of the same code."""
    nb.metadata.pop("language_info", None)
    for cell in code_cells(nb):
        cell.metadata.pop("execution", None)
        for output in cell.outputs:
            if output.output_type == "error":  # a traceback names folders of one machine
                output.traceback = [f"{output.ename}: {output.evalue}"]
    ran = {"outputs": [cell.outputs for cell in code_cells(nb)]}
    ran["widgets"] = nb.metadata.get("widgets", {})
    order: dict[str, str] = {}
    for found in WIDGET_ID.findall(json.dumps(ran)):
        order.setdefault(found, f"{len(order) + 1:032x}")
    renamed = WIDGET_ID.sub(lambda match: order[match[0]], json.dumps(ran))
    tidied = nbformat.from_dict(json.loads(renamed))
    for cell, outputs in zip(code_cells(nb), tidied.outputs, strict=True):
        cell.outputs = outputs
    if tidied.widgets:
        nb.metadata["widgets"] = tidied.widgets


def write(chapter: Chapter, nb: NotebookNode) -> bool:
    """Replace the notebook whole, and only if it changed; whether it did."""
    nbformat.validate(nb)
    text = nbformat.writes(nb) + "\n"
    path = chapter.notebook
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    return True


# ----------------------------------------------------------------------- check


# What nbformat raises for JSON that is something else.
NO_NOTEBOOK = (KeyError, AttributeError, TypeError, UnicodeDecodeError)


def read_notebook(chapter: Chapter) -> NotebookNode | None:
    """The committed notebook; None if there is none."""
    if not chapter.notebook.is_file():
        return None
    try:
        return nbformat.read(chapter.notebook, as_version=4)
    except (nbformat.reader.NotJSONError, nbformat.ValidationError, *NO_NOTEBOOK) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        place = chapter.place(chapter.notebook)
        raise BookError(f"{place}: not a notebook ({first}); {AGAIN}") from None


def check(root: Path) -> list[str]:
    """Every way in which the notebooks are not what the text says."""
    every = chapters(root)
    if not every:
        return [f"{root / 'book/text'}: no chapters here"]
    problems: list[str] = []
    scans = {}
    for chapter in every:
        try:
            found = scan(read_text(chapter))
            scans[chapter.text.relative_to(root)] = found
            problems += [f"{chapter.place(chapter.text, n)}: {w}" for n, w in found.problems]
            problems += check_chapter(chapter)
        except BookError as error:
            problems.append(str(error))
    return problems + duplicates(scans) + check_folders(root, every)


def check_chapter(chapter: Chapter) -> list[str]:
    want, have = expected_notebook(chapter), read_notebook(chapter)
    place = chapter.place(chapter.notebook)
    if have is None:
        return [f"{chapter.place(chapter.text)}: this chapter has no notebook yet; {AGAIN}"]
    if hand_edit(have):
        return [f"{place}: {edited(chapter)}"]
    problems = [f"{place}: {drift}; {AGAIN}" for drift in first_difference(want, have)]
    if not problems and have.metadata.get("made_by") != want.metadata.made_by:
        problems.append(
            f"{place}: stale outputs: the companion code that made them has changed; {AGAIN}"
        )
    for number, cell in enumerate(code_cells(have), start=1):
        raised = [o.ename for o in cell.outputs if o.output_type == "error"]
        meant = "raises-exception" in cell.metadata.get("tags", [])
        if cell.execution_count is None:
            problems.append(f"{place}: code cell {number} was never run; {AGAIN}")
        elif cell.execution_count != number:
            problems.append(f"{place}: code cell {number} was run out of order; {AGAIN}")
        if raised and not meant:
            problems.append(f"{place}: code cell {number} stores an error: {raised[0]}")
    for cell in code_cells(want):
        line = line_of(chapter.text, cell.source)
        problems += [f"{chapter.place(chapter.text, line)}: {fault}" for fault in faults(cell)]
    return problems


def faults(cell: NotebookNode) -> list[str]:
    """What a code cell may not have, in words."""
    found = []
    if cell.source.rstrip().endswith(";"):
        found.append("the cell ends with `;`, which hides its output: remove it")
    tags = {t for t in cell.metadata.get("tags", []) if not t.startswith("exercise-")}
    if tags - TAGS:
        found.append(f"the tag {min(tags - TAGS)} is not one of {', '.join(sorted(TAGS))}")
    try:
        ast.parse(cell.source)
    except SyntaxError:
        found.append("the cell is not plain Python: a magic would hide what it imports")
    return found


def first_difference(want: NotebookNode, have: NotebookNode) -> list[str]:
    """The first cell at which text and notebook part, in words; empty if none."""
    for number, (a, b) in enumerate(zip(want.cells, have.cells, strict=False), start=1):
        if typed(a) != typed(b):
            start = (a.source.strip().splitlines() or [""])[0][:60]
            return [f"drift: cell {number} is not what the text says ({start!r})"]
    if len(want.cells) != len(have.cells):
        return [f"drift: {len(have.cells)} cells, but the text has {len(want.cells)}"]
    kept = {k: v for k, v in have.metadata.items() if k != "made_by"}
    if shows_widgets(have):
        kept.pop("widgets", None)
    return [] if kept == {"kernelspec": KERNEL} else ["drift: the notebook's metadata"]


def shows_widgets(nb: NotebookNode) -> bool:
    return any(WIDGET_VIEW in o.get("data", {}) for c in code_cells(nb) for o in c.outputs)


def typed(cell: NotebookNode) -> dict[str, object]:
    """All of a cell but what running it adds."""
    return {k: v for k, v in cell.items() if k not in ("outputs", "execution_count")}


def check_folders(root: Path, every: list[Chapter]) -> list[str]:
    """Notebooks without a text, and chapters that no table of contents names."""
    names = {chapter.name for chapter in every}
    folder = root / "book/notebooks"
    made = {
        p.relative_to(folder).with_suffix("").as_posix()
        for p in folder.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in p.parts
    }
    problems = [
        f"book/notebooks/{name}.ipynb: an orphan: book/text/{name}.md does not exist; "
        "restore the text, or delete the notebook"
        for name in sorted(made - names)
    ]
    problems += [
        f"{p.relative_to(root).as_posix()}: only notebooks belong here: code beside them "
        "would be imported in place of the companion; move it out"
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix != ".ipynb"
    ]
    try:
        toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        return [*problems, f"_toc.yml: not YAML: {' '.join(str(error).split())}"]
    listed = set(toc_files(toc))
    problems += [
        f"book/text/{name}.md: not in _toc.yml, so no reader would find it: add it"
        for name in sorted(names - listed)
    ]
    problems += [
        f"_toc.yml: names {name}, but book/text/{name}.md does not exist"
        for name in sorted(listed - names)
    ]
    return problems


def toc_files(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [str(v) for k, v in node.items() if k in ("root", "file")]
        return own + [f for v in node.values() for f in toc_files(v)]
    if isinstance(node, list):
        return [f for item in node for f in toc_files(item)]
    return []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="execute the chapters whose code changed")
    runner.add_argument("names", nargs="*", metavar="NAME", help="only these chapters")
    runner.add_argument("--force", action="store_true", help="even if nothing changed")
    commands.add_parser("check", help="is every notebook what its text says? No kernel")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    try:
        if options.command == "run":
            return 1 if run(root, options.names, options.force) else 0
        problems = check(root)
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(chapters(root))} chapters, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
