"""tools/notebooks.py: one way from text to notebook, and a gate for each way to go astray."""

import re
from pathlib import Path

import labels
import nbformat
import notebooks
import pytest

HEADER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
TEXT = (
    HEADER
    + """(sec-one)=
# One

Some prose.

$$
a = b
$$ (eq-one)

```{code-cell} ipython3
from companion import rnn
```

More prose.

```{code-cell} ipython3
import os
print(os.getpid() > 0)
os.getpid()
```
"""
)
RNN = '''"""A module."""

from . import base


def f(x):
    """Double."""
    return 2 * x
'''


class Project:
    """A small project of one chapter in a temporary folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.text = root / "book/text/one.md"
        self.notebook = root / "book/notebooks/one.ipynb"
        for path, content in {
            "book/text/one.md": TEXT,
            "_toc.yml": "root: one\n",
            "companion/__init__.py": "",
            "companion/rnn.py": RNN,
            "companion/base.py": "SIZE = 1\n",
            "companion/other.py": "SIZE = 1\n",
        }.items():
            self.write(path, content)

    def write(self, path: str, content: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(content, encoding="utf-8", newline="\n")

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def main(self, *arguments: str) -> int:
        return notebooks.main(["--root", str(self.root), *arguments])

    def problems(self) -> str:
        return "\n".join(notebooks.check(self.root))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The notebook of TEXT, executed once for all tests."""
    project = Project(tmp_path_factory.mktemp("executed"))
    assert project.main("run") == 0
    return project.notebook.read_text(encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path, executed: str) -> Project:
    made = Project(tmp_path)
    made.write("book/notebooks/one.ipynb", executed)
    return made


def test_a_fresh_project_has_no_problems(project: Project) -> None:
    assert project.problems() == ""
    assert project.main("check") == 0


def test_running_again_changes_nothing(project: Project, executed: str) -> None:
    project.edit("book/text/one.md", "os.getpid()\n```", "7\n```")
    assert project.main("run") == 0
    once = project.notebook.read_bytes()
    assert project.main("run", "--force") == 0
    assert project.notebook.read_bytes() == once != executed.encode()


def test_a_prose_edit_runs_nothing_and_changes_only_its_cell(
    project: Project, executed: str
) -> None:
    project.edit("book/text/one.md", "More prose.", "Better prose.")
    assert "drift: cell 3" in project.problems()
    assert project.main("run") == 0
    before, after = executed.splitlines(), project.notebook.read_text("utf-8").splitlines()
    changed = [a for a, b in zip(before, after, strict=True) if a != b]
    # The source, the id made from it, and the digest of all; the process id stands.
    assert len(changed) == 3
    assert project.problems() == ""


@pytest.mark.parametrize(
    ("path", "old", "new", "stale"),
    [
        ("companion/rnn.py", "2 * x", "3 * x", True),
        ("companion/base.py", "1", "2", True),  # imported by rnn
        ("companion/__init__.py", "", "X = 1", True),
        ("companion/other.py", "1", "2", False),  # imported by nobody
        ("companion/rnn.py", "Double.", "Twice.", False),
        ("companion/rnn.py", "    return", "    # why\n    return", False),
    ],
)
def test_outputs_are_stale_exactly_when_the_code_behind_them_changed(
    project: Project, path: str, old: str, new: str, stale: bool
) -> None:
    project.edit(path, old, new)
    problems = project.problems()
    assert ("stale outputs" in problems) == stale
    assert problems == "" or "book/notebooks/one.ipynb" in problems
    assert problems == "" or "make notebooks" in problems


def test_the_stamp_covers_the_browser_modules_of_an_imported_package(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write("companion/explore/__init__.py", "")
    project.write("companion/explore/chain.js", "export const a = 1")
    project.edit("book/text/one.md", "from companion import rnn", "import companion.explore")
    stamp = notebooks.expected_notebook(notebooks.Chapter(tmp_path, "one")).metadata
    project.edit("companion/explore/chain.js", "1", "2")
    assert stamp != notebooks.expected_notebook(notebooks.Chapter(tmp_path, "one")).metadata


def test_a_docstring_is_told_from_a_string_that_does_something() -> None:
    trees = ['def f():\n    "a"\n    return 1', 'def f():\n    "b"\n    return 1']
    same = [notebooks.canonical(notebooks.ast.parse(tree)) for tree in trees]
    assert same[0] == same[1]
    assert notebooks.canonical(notebooks.ast.parse("x = 'a'")) != notebooks.canonical(
        notebooks.ast.parse("x = 'b'")
    )
    assert notebooks.canonical(notebooks.ast.parse("f(None)")) != notebooks.canonical(
        notebooks.ast.parse("f()")
    )


FAULTS = {
    "reverted text": ("Some prose.", "Older prose.", "drift: cell 1"),
    "edited code": ("os.getpid()\n```", "8\n```", "drift: cell 4"),
    "duplicate label": ("More prose.", "(sec-one)=\n## Two", "duplicate label `sec-one`"),
    "no label": ("$$ (eq-one)", "$$", "a displayed equation needs a label"),
    "label of another kind": ("(eq-one)", "(one)", "must be a prefix and an idea"),
    "unclosed equation": ("$$ (eq-one)", "", "never closed"),
    "unclosed block": ("More prose.", ":::{note}\nMore.", "never closed"),
    "math directive": ("More prose.", "```{math}\na\n```", "instead of the math directive"),
    "hidden cell": (
        "More prose.",
        "::::{note}\n```{code-cell} ipython3\n1\n```\n::::",
        "never run",
    ),
    "wrong with a label": (
        "More prose.",
        ":::{admonition} Wrong: no\n:class: wrong\n$$\na\n$$ (eq-two)\n:::",
        "a wrong formula has no label",
    ),
    "wrong without the word": (
        "More prose.",
        ":::{admonition} Not so\n:class: wrong\n$$\na\n$$\n:::",
        "starts with the word Wrong",
    ),
    "semicolon": ("os.getpid()\n```", "os.getpid(); \n```", "ends with `;`"),
    "equation in a list": ("More prose.", "- $$ 1 = 2 $$ (eq-two)", "$$ must begin its line"),
    "equation in a quote": ("More prose.", "> $$ 1 = 2 $$ (eq-two)", "$$ must begin its line"),
    "equation in a sentence": ("More prose.", "So $$ 1 = 2 $$.", "$$ must begin its line"),
    "raw directive": ("More prose.", "```{raw} html\nx\n```", "instead of the raw directive"),
    "magic": ("import os\n", "%pwd\nimport os\n", "not plain Python"),
    "hiding tag": (
        "```{code-cell} ipython3\nimport os",
        "```{code-cell} ipython3\n:tags: [remove-output]\nimport os",
        "the tag remove-output is not one of",
    ),
    "header that would be dropped": ("---\n\n(sec", "mystnb: {a: 1}\n---\n\n(sec", "`mystnb`"),
    "header that is not YAML": ("kernelspec:", "kernelspec: [", "Notebook metadata"),
    "no kernel": ("name: python3", "name: julia", "must name the kernel python3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_text_is_named_with_its_file(project: Project, fault: str) -> None:
    old, new, message = FAULTS[fault]
    project.edit("book/text/one.md", old, new)
    problems = project.problems()
    assert message in problems
    assert re.search(r"book/(text/one\.md:\d+|notebooks/one\.ipynb): ", problems)
    assert project.main("check") == 1


def test_lines_are_counted_from_one_and_fences_nest() -> None:
    nested = "````{note}\n```python\n$$ no maths\nname: str\n```\n:label: ex-a\n````\n$$\nb\n$$"
    found = labels.scan("(sec-a)=\n" + nested)
    assert [(label.name, label.line) for label in found.labels] == [("sec-a", 1), ("ex-a", 7)]
    assert [(e.tex, e.line) for e in found.equations] == [("b", 9)]
    assert [line for line, _ in found.problems] == [9]  # no label


def test_only_the_header_of_a_cell_declares_a_label() -> None:
    cell = "```{code-cell} ipython3\n---\nname: fig-a\n---\nclass A:\n    name: str\n```"
    found = labels.scan(cell)
    assert [(label.name, label.line) for label in found.labels] == [("fig-a", 3)]
    assert found.problems == []


@pytest.mark.parametrize(
    ("path", "content", "told"),
    [
        ("book/text/one.md", b"caf\xe9", "book/text/one.md:1: not UTF-8"),
        ("book/notebooks/one.ipynb", b"[]", "book/notebooks/one.ipynb: not a notebook"),
        ("book/notebooks/one.ipynb", b"\xff", "book/notebooks/one.ipynb: not a notebook"),
        ("_toc.yml", b"root: [", "_toc.yml: not YAML"),
        ("book/notebooks/companion/rnn.py", b"", "only notebooks belong here"),
    ],
)
def test_files_that_are_something_else_are_named(
    project: Project, path: str, content: bytes, told: str
) -> None:
    (project.root / path).parent.mkdir(exist_ok=True)
    (project.root / path).write_bytes(content)
    assert told in project.problems()


def test_a_wrong_formula_in_its_box_is_no_fault(project: Project) -> None:
    box = ":::{admonition} Wrong: no\n:class: wrong\n\n$$\na\n$$\n:::"
    project.edit("book/text/one.md", "More prose.", box)
    assert project.main("run") == 0
    assert project.problems() == ""


def test_a_hand_edited_notebook_is_not_overwritten_unless_forced(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    nb = nbformat.read(project.notebook, as_version=4)
    nb.cells[-1].source = "my_answer = 1"
    nb.metadata["language_info"] = {"name": "python"}  # as Jupyter adds
    nbformat.write(nb, project.notebook)
    mine = project.notebook.read_text(encoding="utf-8")
    assert "edited by hand" in project.problems()
    assert project.main("run") == 1
    assert "make notebooks CHAPTER=one" in capsys.readouterr().err
    assert project.notebook.read_text(encoding="utf-8") == mine
    assert project.main("run", "one", "--force") == 0
    assert project.problems() == ""


def test_a_notebook_that_jupyter_only_saved_is_made_tidy_again(
    project: Project, executed: str
) -> None:
    nb = nbformat.read(project.notebook, as_version=4)
    nb.metadata["language_info"] = {"name": "python", "version": "3.99"}
    nbformat.write(nb, project.notebook)
    assert "drift: the notebook's metadata" in project.problems()
    assert project.main("run") == 0
    assert project.notebook.read_text(encoding="utf-8") == executed


def test_a_cell_that_was_never_run_is_refused(project: Project) -> None:
    nb = nbformat.read(project.notebook, as_version=4)
    nb.cells[-1].execution_count, nb.cells[-1].outputs = None, []
    nbformat.write(nb, project.notebook)
    assert "code cell 2 was never run" in project.problems()
    assert project.main("run") == 0
    assert project.problems() == ""


def test_a_stored_error_is_refused(project: Project) -> None:
    nb = nbformat.read(project.notebook, as_version=4)
    nb.cells[-1].outputs = [
        nbformat.v4.new_output("error", ename="E", evalue="e", traceback=[])
    ]
    nbformat.write(nb, project.notebook)
    assert "stores an error: E" in project.problems()


def test_orphans_and_chapters_that_no_reader_finds_are_named(project: Project) -> None:
    project.write("book/text/two.md", TEXT.replace("-one)", "-two)"))
    project.write("_toc.yml", "root: one\nchapters:\n- file: three\n")
    project.write("book/notebooks/four.ipynb", "{}")
    problems = project.problems()
    assert "book/text/two.md: this chapter has no notebook yet" in problems
    assert "book/text/two.md: not in _toc.yml" in problems
    assert "names three, but book/text/three.md does not exist" in problems
    assert "book/notebooks/four.ipynb: an orphan" in problems


def test_a_notebook_with_merge_conflicts_is_named_and_made_again(project: Project) -> None:
    project.write("book/notebooks/one.ipynb", "<<<<<<< HEAD\n{}")
    assert "book/notebooks/one.ipynb: not a notebook" in project.problems()
    assert project.main("run") == 0
    assert project.problems() == ""


def test_a_failing_cell_is_named_by_line_and_the_notebook_is_left_alone(
    project: Project, executed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    project.edit("book/text/one.md", "print(os.getpid() > 0)", "1 / 0")
    assert project.main("run") == 1
    printed = capsys.readouterr()
    assert "book/text/one.md:28: this cell failed" in printed.err
    assert "ZeroDivisionError" in printed.err
    assert "1 failed" in printed.out
    assert project.notebook.read_text(encoding="utf-8") == executed
    assert list(project.notebook.parent.glob("*.tmp")) == []


def test_an_unknown_name_lists_the_known_ones(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.main("run", "nine") == 1
    assert "no chapter is called 'nine'; there are: one" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["b/two", "two", "book/text/b/two.md", "./book/notebooks/b/two.ipynb"]
)
def test_a_chapter_is_chosen_by_name_or_path(tmp_path: Path, name: str) -> None:
    every = [notebooks.Chapter(tmp_path, n) for n in ("a/one", "b/two")]
    assert notebooks.select(every, [name]) == [every[1]]
    assert notebooks.select(every, []) == every


def test_random_widget_ids_are_renamed_by_order() -> None:
    ids = ["0123456789abcdef" * 2, "f" * 32]
    text = f"IPY_MODEL_{ids[1]} {ids[0]} {ids[1]} {'e' * 40}"
    cell = nbformat.v4.new_code_cell(
        outputs=[nbformat.v4.new_output("stream", name="stdout", text=text)]
    )
    cell.source = f"'{ids[1]}'"  # what was typed stays as it is
    nb = nbformat.v4.new_notebook(cells=[cell], metadata={"language_info": {"name": "x"}})
    nb.metadata["widgets"] = {"state": {ids[0]: {}}}
    notebooks.tidy(nb)
    a, b = f"{1:032x}", f"{2:032x}"
    assert nb.cells[0].outputs[0].text == f"IPY_MODEL_{a} {b} {a} {'e' * 40}"
    assert nb.metadata == {"widgets": {"state": {b: {}}}}
    assert nb.cells[0].source == f"'{ids[1]}'"
