"""The chapters: their exercises can be marked, and their form keeps to the style."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import nbformat
import notebooks
import pytest
import torch
from checking import ROOT
from labels import scan
from ledger import PAGE, tables, with_table
from wrong_answers import SEARCH, WRONG

CHAPTERS = notebooks.chapters(ROOT)
TAUGHT = [c for c in CHAPTERS if c.name.split("/")[0] not in ("index", "notation", "appendix")]
FULL = [c for c in TAUGHT if not c.name.startswith("start/")]
EXERCISE = re.compile(
    r"^`{3,}\{exercise(?:-start)?\} .+\n:label: (?P<label>ex-\S+)$", re.MULTILINE
)
FACTS = re.compile(
    r"\*(By hand|By code|To argue), level [123], \d+ minutes"
    r"(?P<open>, open: no solution is printed)?\. You practise: [^*]+\.\*"
)


def by_name(chapter: notebooks.Chapter) -> str:
    return chapter.name


def read(chapter: notebooks.Chapter) -> str:
    return chapter.text.read_text(encoding="utf-8")


def cells(chapter: notebooks.Chapter) -> list[nbformat.NotebookNode]:
    return notebooks.code_cells(nbformat.read(chapter.notebook, as_version=4))


# --------------------------------------------------------------------- freshness


def test_every_notebook_is_what_its_text_says() -> None:
    assert notebooks.check(ROOT) == []


def test_the_appendix_lists_the_ledger() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page == with_table(page, tables(ROOT)), "type: make ledger"


# --------------------------------------------------------------------- exercises


@dataclass
class Exercise:
    """An exercise's cells, and the names its chapter had defined before them."""

    label: str
    sources: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.label in SEARCH

    def run(self, *kinds: str) -> None:
        for kind in kinds:
            if kind in self.sources:
                exec(self.sources[kind], self.names)

    def one(self, prefix: str, suffix: str = "") -> Any:
        """The function that a cell defines, by the pattern of its name."""
        pattern = re.compile(rf"^def ({prefix}\w+{suffix})\(", re.MULTILINE)
        kind = {"check_": "check", "": "solution" if suffix else "stub"}[prefix]
        (name,) = pattern.findall(self.sources[kind])
        return self.names[name]


def run_all(chapter: notebooks.Chapter) -> dict[str, Exercise]:
    """Run a chapter but for its exercises' own cells, and return those."""
    names: dict[str, Any] = {}
    found: dict[str, Exercise] = {}
    for cell in cells(chapter):
        label = cell.metadata.get("exercise")
        if label is None:
            exec(cell.source, names)
            continue
        (kind,) = (t for t in cell.metadata.tags if t.startswith("exercise-"))
        exercise = found.setdefault(label, Exercise(label, names=names))
        exercise.sources[kind.removeprefix("exercise-")] = cell.source
    return found


@pytest.fixture(scope="module", params=TAUGHT, ids=by_name)
def exercises(request: pytest.FixtureRequest) -> Iterator[dict[str, Exercise]]:
    """The exercises of one chapter; what its cells set in torch is put back after."""
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    try:
        yield run_all(request.param)
    finally:
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)
        torch.set_printoptions(profile="default")


def test_untouched_stubs_say_what_to_do_and_run_all_goes_on(
    exercises: dict[str, Exercise], capsys: pytest.CaptureFixture[str]
) -> None:
    for exercise in exercises.values():
        exercise.run("stub", "check")  # the check's last line attempts the stub
        assert capsys.readouterr().out == "not attempted\n"
        with pytest.raises(NotImplementedError, match=r"\w{3}"):
            exercise.one("check_")(exercise.one(""))


def test_solutions_pass(exercises: dict[str, Exercise]) -> None:
    for exercise in exercises.values():
        assert ("solution" in exercise.sources) != exercise.is_open, (
            f"{exercise.label} needs a solution cell, or, if it is open, a place in SEARCH "
            "of tests/wrong_answers.py"
        )
        exercise.run("stub", "check", "solution")
        if not exercise.is_open:
            assert exercise.one("check_")(exercise.one("", "_solution")) is None


def test_wrong_answers_fail_also_after_the_solution_has_run(
    exercises: dict[str, Exercise],
) -> None:
    for label, exercise in exercises.items():
        assert label in WRONG, f"tests/wrong_answers.py has no wrong answer to {label}"
        assert len(WRONG[label]) >= (3 if exercise.is_open else 1), label
        exercise.run("stub", "check", "solution")
        for answer in WRONG[label]:
            with pytest.raises(AssertionError, match=r"\w"):
                exercise.one("check_")(answer)


def test_an_open_exercise_can_be_solved(exercises: dict[str, Exercise]) -> None:
    for label, exercise in exercises.items():
        if not exercise.is_open:
            continue
        exercise.run("stub", "check")
        check, passed = exercise.one("check_"), 0
        for answer in itertools.islice(SEARCH[label](), 20_000):
            try:
                check(lambda answer=answer: answer)
                passed += 1
                break
            except AssertionError:
                continue
        assert passed, f"{label}: no valid answer among 20,000 random ones"


@pytest.mark.parametrize("chapter", TAUGHT, ids=by_name)
def test_exercises_say_kind_level_minutes_and_aim(chapter: notebooks.Chapter) -> None:
    text = read(chapter)
    labels = EXERCISE.findall(text)
    facts = [match["open"] for match in FACTS.finditer(text)]
    assert len(labels) == len(facts), "each needs its line, *By code, level 2, 15 minutes. ...*"
    assert len(labels) >= 3, f"{chapter.name} has {len(labels)} exercises, and needs 3"
    assert [bool(f) for f in facts] == [label in SEARCH for label in labels]
    assert any(facts), "at least one open exercise a chapter"
    in_cells = {
        cell.metadata.exercise for cell in cells(chapter) if "exercise" in cell.metadata
    }
    assert in_cells <= set(labels)


def test_every_wrong_answer_belongs_to_an_exercise() -> None:
    labels = {label for chapter in TAUGHT for label in EXERCISE.findall(read(chapter))}
    assert set(WRONG) <= labels
    assert set(SEARCH) <= set(WRONG)


# ------------------------------------------------------------------------- style


def prose(chapter: notebooks.Chapter) -> str:
    """The text without header, code, maths blocks, directive lines and exercises."""
    text = re.sub(r"\A---.*?\n---\n", "", read(chapter), flags=re.DOTALL)
    text = text.split("\n## Exercises")[0]
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$.*?^\$\$.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^(:{3,}|`{3,}|:\w+:|\().*$", "", text, flags=re.MULTILINE)


def word_count(chapter: notebooks.Chapter) -> int:
    return len(re.findall(r"[A-Za-z][\w'-]*", prose(chapter)))


@pytest.mark.parametrize("chapter", FULL, ids=by_name)
def test_a_chapter_is_1200_to_1900_words_and_12_to_22_cells(chapter: notebooks.Chapter) -> None:
    words = word_count(chapter)
    assert 1200 <= words <= 1900, f"{chapter.name} has {words} words, exercises aside"
    own = [cell for cell in cells(chapter) if "exercise" not in cell.metadata]
    assert 12 <= len(own) <= 22, f"{chapter.name} has {len(own)} code cells, exercises aside"


def test_the_first_page_is_at_most_900_words() -> None:
    assert word_count(notebooks.Chapter(ROOT, "start/two_products")) <= 900


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_code_fits_a_phone(chapter: notebooks.Chapter) -> None:
    for cell in cells(chapter):
        lines = cell.source.splitlines()
        assert max(map(len, lines)) <= 64, max(lines, key=len)
        is_folded = "hide-input" in cell.metadata.get("tags", [])
        limit = 40 if is_folded else 18 if "exercise" in cell.metadata else 12
        assert sum(bool(line.strip()) for line in lines) <= limit, cell.source


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_figures_have_alt_text_a_caption_and_a_label(chapter: notebooks.Chapter) -> None:
    drawn = 0
    for cell in cells(chapter):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            drawn += 1
            shown = cell.metadata.mystnb
            assert len(shown.image.alt) > 40
            assert shown.figure.name.startswith("fig-")
            assert shown.figure.caption.strip().endswith(".")
    assert drawn <= 6


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_titles_are_short_and_words_are_kind(chapter: notebooks.Chapter) -> None:
    text = prose(chapter)
    (title,) = re.findall(r"^# (.+)$", text, flags=re.MULTILINE)
    assert len(title) <= 45
    assert not re.findall(r"\b(simply|obviously|trivially|clearly)\b", text, re.IGNORECASE)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=by_name)
def test_numbers_in_the_prose_come_from_a_cell(chapter: notebooks.Chapter) -> None:
    """Those of three digits and more; shorter ones are too common to trace."""
    shown = "".join(
        cell.source + "".join(str(output.get("text", "")) for output in cell.outputs)
        for cell in cells(chapter)
    )
    for number in re.findall(r"(?<![\w.])\d*\.\d{3,}", prose(chapter)):
        assert number in shown, f"{number} is in the prose, and no cell prints it"


@pytest.mark.parametrize("chapter", TAUGHT, ids=by_name)
def test_every_wrong_formula_is_run_and_rejected_below_it(chapter: notebooks.Chapter) -> None:
    """A cell after the wrong formula asserts that it differs from the right one."""
    text = read(chapter)
    for equation in scan(text).equations:
        if equation.in_wrong:
            below = "\n".join(text.splitlines()[equation.line :])
            assert re.search(r"assert .*> 0\.1", below), f"line {equation.line}"


@pytest.mark.parametrize("chapter", TAUGHT, ids=by_name)
def test_the_setup_cell_comes_first(chapter: notebooks.Chapter) -> None:
    first = cells(chapter)[0].source
    assert "torch.set_default_dtype(torch.float64)" in first
    assert "torch.set_num_threads(1)" in first
