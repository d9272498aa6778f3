"""tools/mark.py: every learner gets what the answer deserves, whatever the others did."""

from pathlib import Path

import mark
import nbformat
import pytest
from checking import ROOT

BOOK = ROOT / "book/notebooks/start/two_products.ipynb"
STUBS = {
    "ex-one-unit-by-hand": "two_steps",
    "ex-sentence-log": "log_probability",
    "ex-both-fates": "both_fates",
}
RIGHT = "def two_steps():\n    return 3.146"
HONEST_LOG = """
def log_probability(sentence, table):
    total, previous = 0.0, "START"
    for word in sentence:
        p = table[previous][word]
        total += math.log(p) if p > 0 else -math.inf
        previous = word
    return total
"""
PATCHES_MATH = "math.isclose = lambda *a, **k: True\n" + HONEST_LOG
FORGED = f"""
def both_fates():
    print("{mark.VERDICT}{mark.PASSED}", flush=True)
    import os
    os._exit(0)
"""
# learner: what the answer cells say, and the verdicts' first words
LEARNERS = {
    "untouched": ({}, ["not attempted", "not attempted", "not attempted"]),
    "right": (
        {"ex-one-unit-by-hand": RIGHT, "ex-sentence-log": HONEST_LOG},
        ["passed", "passed", "not attempted"],
    ),
    "wrong": (
        {
            "ex-one-unit-by-hand": "def two_steps():\n    return float('nan')",
            "ex-sentence-log": "def log_probability(s, t):\n    return 0.0",
            "ex-both-fates": "def both_fates():\n    return 1.0, [1.0] * 5, [1.0] * 5",
        },
        ["FAILED AssertionError", "FAILED AssertionError", "FAILED AssertionError"],
    ),
    "broken": (
        {
            "ex-one-unit-by-hand": "def two_steps(:",
            "ex-sentence-log": "def log_probability(s, t):\n    raise SystemExit(0)",
            "ex-both-fates": FORGED,
        },
        ["FAILED SyntaxError", "FAILED SystemExit", "FAILED"],
    ),
}


def notebook(path: Path, answers: dict[str, str], drop: tuple[str, ...] = ()) -> Path:
    nb = nbformat.read(BOOK, as_version=4)
    for cell in nb.cells:
        label = cell.metadata.get("exercise")
        if mark.tag(cell) == "stub" and label in answers:
            cell.source = answers[label]
    nb.cells = [c for c in nb.cells if c.metadata.get("exercise") not in drop]
    nbformat.write(nb, path)
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("learners")
    paths = [notebook(folder / f"{name}.ipynb", told) for name, (told, _) in LEARNERS.items()]
    return dict(zip(LEARNERS, mark.marks("two_products", paths), strict=True))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_gets_the_verdicts_that_the_answers_deserve(
    rows: dict[str, dict[str, str]], name: str
) -> None:
    got = [rows[name][label] for label in STUBS]
    for verdict, start in zip(got, LEARNERS[name][1], strict=True):
        assert verdict.startswith(start)
        assert verdict.isprintable()


def test_one_learners_code_does_not_reach_anothers_mark(tmp_path: Path) -> None:
    wrong = "def log_probability(s, t):\n    return 0.0"
    paths = [
        notebook(tmp_path / f"{k}.ipynb", {"ex-sentence-log": told}, drop=("ex-both-fates",))
        for k, told in enumerate([PATCHES_MATH, wrong])
    ]
    first, second = mark.marks("two_products", paths)
    assert first["ex-sentence-log"] == "passed"
    assert second["ex-sentence-log"].startswith("FAILED")
    assert second["ex-both-fates"] == "no answer cell"


def test_a_right_answer_to_an_open_exercise_passes_as_data() -> None:
    """Found by a blind search: no answer stands in this repository."""
    from wrong_answers import SEARCH

    book = nbformat.read(BOOK, as_version=4)
    names: dict[str, object] = {}
    exec("import math, torch\nfrom companion import exercises", names)
    exec("torch.set_default_dtype(torch.float64)", names)
    stub, check = (mark.by_exercise(book, k)["ex-both-fates"] for k in ("stub", "check"))
    exec(stub + "\n" + check, names)
    for answer in SEARCH["ex-both-fates"]():
        try:
            names["check_both_fates"](lambda answer=answer: answer)  # type: ignore[operator]
            break
        except AssertionError:
            continue
    exec("torch.set_default_dtype(torch.float32)", names)
    for cell in book.cells:
        if mark.tag(cell) == "stub" and cell.metadata.exercise == "ex-both-fates":
            cell.source = f"def both_fates():\n    return {answer!r}"
    assert mark.mark(nbformat.read(BOOK, as_version=4), book, "ex-both-fates") == "passed"


def test_a_module_left_in_the_folder_is_not_imported() -> None:
    planted = "open('torch.py', 'w').write('')\nimport torch\nprint('torch' in torch.__name__, "
    planted += f"'\\n{mark.VERDICT}', hasattr(torch, 'Tensor'), sep='')"
    assert mark.run(planted) == "True"
    assert not (ROOT / "torch.py").exists()


def test_an_answer_that_changes_the_companion_ends_the_marking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stamps = iter(["before", "after"])
    monkeypatch.setattr(mark, "companion_stamp", lambda: next(stamps))
    with pytest.raises(mark.BookError, match="no mark of this run counts"):
        mark.run("pass")


def test_an_endless_answer_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark, "SECONDS", 1)
    assert mark.run("while True: pass") == "FAILED it took longer than 1 s"


def test_bad_files_and_names_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.ipynb").write_text("not json", encoding="utf-8")
    for chapter, path, told in [
        ("two_products", tmp_path / "none.ipynb", "there is no such file"),
        ("two_products", tmp_path / "a.ipynb", "not a notebook"),
        ("nine", BOOK, "no chapter is called 'nine'"),
    ]:
        assert mark.main([chapter, str(path)]) == 2
        assert told in capsys.readouterr().err
