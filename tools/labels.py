"""What a chapter's text declares: its labels and displayed equations, by line.

A scan of the text itself, line by line, so that every complaint can name the
file and the line that an author has to open.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^\s*(?P<mark>:{3,}|`{3,}|~{3,})(?P<rest>.*)$")
DIRECTIVE = re.compile(r"^\{(?P<name>[\w:-]+)\}")
TARGET = re.compile(r"^\((?P<label>[^)\s]+)\)=\s*$")
OPTION = re.compile(r"^\s*:?(?:label|name):\s*(?P<label>\S+)\s*$")
CLASS = re.compile(r"^:class:\s*(?P<classes>.+)$")
DISPLAY = re.compile(r"^\$\$")
DISPLAY_END = re.compile(r"\$\$\s*(?:\((?P<label>[^)\s]+)\))?\s*$")
LABEL = re.compile(r"^(sec|eq|def|fig|tab|ex|sol|thm)-[a-z0-9]+(-[a-z0-9]+)*$")


@dataclass(frozen=True)
class Label:
    """A label and the line that declares it."""

    name: str
    line: int


@dataclass(frozen=True)
class Equation:
    """A displayed equation: its label (None if it has none), line, TeX and place."""

    label: str | None
    line: int
    tex: str
    in_wrong: bool


@dataclass
class Directive:
    mark: str
    name: str
    line: int
    title: str
    classes: str = ""
    in_header: bool = False  # between the two lines of --- that open a code cell


@dataclass(frozen=True)
class Scan:
    labels: list[Label]
    equations: list[Equation]
    problems: list[tuple[int, str]]


def scan(text: str) -> Scan:
    """Labels, displayed equations, and breaches of the rules for both."""
    found = Scan([], [], [])
    open_: list[Directive] = []
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        fence = FENCE.match(line)
        if fence:
            _follow_fence(open_, fence["mark"], fence["rest"].strip(), number, found)
        elif open_ and open_[-1].name in ("code", "code-cell"):
            _read_code_line(line, number, open_[-1], found)
        elif option := OPTION.match(line) if open_ else None:
            found.labels.append(Label(option["label"], number))
        elif target := TARGET.match(line):
            found.labels.append(Label(target["label"], number))
        elif klass := CLASS.match(line) if open_ else None:
            open_[-1].classes = klass["classes"]
        elif DISPLAY.match(line):
            _read_equation(line, number, lines, open_, found)
        elif "$$" in re.sub(r"`[^`]*`", "", line):
            found.problems.append(
                (
                    number,
                    "$$ must begin its line: an equation in a list, a quote, a table "
                    "or a sentence would escape the checks",
                )
            )
    found.problems.extend(
        (d.line, f"the block `{d.mark}{{{d.name}}}` is never closed") for d in open_
    )
    found.problems.extend(
        (
            label.line,
            f"the label `{label.name}` must be a prefix and an idea, "
            "such as eq-whole-chain (prefixes: sec eq def fig tab ex sol thm)",
        )
        for label in found.labels
        if not LABEL.match(label.name)
    )
    return found


def _follow_fence(open_: list[Directive], mark: str, rest: str, line: int, found: Scan) -> None:
    inside_code = bool(open_) and open_[-1].name in ("code", "code-cell")
    closes = open_ and not rest and open_[-1].mark[0] == mark[0]
    if closes and len(mark) >= len(open_[-1].mark):
        _check_wrong(open_.pop(), found)
    elif not inside_code:
        named = DIRECTIVE.match(rest)
        name = named["name"] if named else "code"
        title = rest[named.end() :].strip() if named else ""
        if name == "code-cell" and open_:
            found.problems.append(
                (
                    line,
                    f"a code cell inside `{{{open_[-1].name}}}` would be shown but "
                    "never run: move it out, or use the -start and -end directives",
                )
            )
        if name in ("math", "eval-rst", "raw"):
            found.problems.append(
                (
                    line,
                    f"write $$ ... $$ (eq-label), or plain Markdown, instead of the {name} "
                    "directive",
                )
            )
        open_.append(Directive(mark, name, line, title))


def _read_code_line(line: str, number: int, cell: Directive, found: Scan) -> None:
    """In a code cell only its header can declare a label: a figure's name."""
    if line.strip() == "---":
        cell.in_header = not cell.in_header
    elif cell.in_header and (option := OPTION.match(line)):
        found.labels.append(Label(option["label"], number))


def _read_equation(
    line: str,
    number: int,
    lines: Iterator[tuple[int, str]],
    open_: list[Directive],
    found: Scan,
) -> None:
    text = line[2:]
    end = DISPLAY_END.search(text)
    while not end:
        following = next(lines, None)
        if following is None:
            found.problems.append((number, "this $$ is never closed"))
            return
        text += "\n" + following[1]
        end = DISPLAY_END.search(text)
    label, tex = end["label"], " ".join(text[: end.start()].split())
    wrong = any("wrong" in d.classes.split() for d in open_)
    found.equations.append(Equation(label, number, tex, wrong))
    if label:
        found.labels.append(Label(label, number))
    if wrong and label:
        found.problems.append((number, "a wrong formula has no label: remove it"))
    if not wrong and not (label and label.startswith(("eq-", "def-"))):
        found.problems.append(
            (
                number,
                "a displayed equation needs a label: $$ ... $$ (eq-idea) for a "
                "claim, which needs a check, or (def-idea) for a definition",
            )
        )


def _check_wrong(directive: Directive, found: Scan) -> None:
    if "wrong" in directive.classes.split() and not directive.title.startswith("Wrong"):
        found.problems.append(
            (directive.line, "the title of a wrong formula starts with the word Wrong")
        )


def duplicates(files: dict[Path, Scan]) -> list[str]:
    """One complaint for each label that stands in two places of the book."""
    first: dict[str, str] = {}
    complaints = []
    for path, found in files.items():
        for label in found.labels:
            here = f"{path.as_posix()}:{label.line}"
            if label.name in first:
                complaints.append(
                    f"{here}: duplicate label `{label.name}`, which {first[label.name]} "
                    "has already: labels are unique across the book, so rename one"
                )
            first.setdefault(label.name, here)
    return complaints
