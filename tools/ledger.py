"""Write the appendix page's table of checked equations from book/checked.json.

python tools/ledger.py
"""

import hashlib
import json
import sys
from pathlib import Path

import yaml
from labels import scan
from notebooks import toc_files

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("book/text/appendix/what_is_checked.md")
BEGIN, END = "% ledger: begin", "% ledger: end"
HEADER = "| equation | by | cases | allowed | found |\n|---|---|---|---|---|\n"


def equations_in_text(root: Path) -> dict[str, str]:
    """Every `eq-` label of the book with its chapter, as a reader meets them."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    return {
        equation.label: chapter
        for chapter in toc_files(toc)
        for equation in scan(text_of(root, chapter)).equations
        if equation.label and equation.label.startswith("eq-")
    }


def formulas_in_text(root: Path) -> dict[str, str]:
    """A digest of the TeX of every `eq-` formula, by label."""
    return {
        equation.label: hashlib.sha256(equation.tex.encode()).hexdigest()[:16]
        for chapter in dict.fromkeys(equations_in_text(root).values())
        for equation in scan(text_of(root, chapter)).equations
        if equation.label and equation.label.startswith("eq-")
    }


def text_of(root: Path, chapter: str) -> str:
    return (root / "book/text" / f"{chapter}.md").read_text(encoding="utf-8-sig")


def tables(root: Path) -> str:
    """The ledger in Markdown: a table for each chapter, a row for each route."""
    ledger = json.loads((root / "book/checked.json").read_text(encoding="utf-8"))
    parts: dict[str, str] = {}
    for label, chapter in equations_in_text(root).items():
        for route, entry in ledger.get(label, {"routes": {}})["routes"].items():
            name = label.removeprefix("eq-").replace("-", " ")
            found = f"{entry['largest_error']:.0e}" if entry["largest_error"] else "0"
            row = f"| {{eq}}`{label}` {name} | {route} | {entry['cases']} "
            allowed = f"{entry['rtol']:.0e}"
            allowed += f" + {entry['atol']:.0e}" if entry["atol"] else ""
            row += f"| {allowed} | {found} |\n"
            parts[chapter] = parts.get(chapter, HEADER) + row
    return "\n".join(f"In {{doc}}`/{name}`:\n\n{rows}" for name, rows in parts.items())


def with_table(page: str, new: str) -> str:
    """The page, with what stands between its two marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.as_posix()}: the lines '{BEGIN}' and '{END}' must both stand")
    mark = begin + rest.partition("\n")[0]
    return f"{before}{mark}\n\n{new}\n{end}{after}"


def main() -> int:
    path = ROOT / PAGE
    path.write_text(
        with_table(path.read_text(encoding="utf-8"), tables(ROOT)),
        encoding="utf-8",
        newline="\n",
    )
    print(f"{PAGE.as_posix()}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
