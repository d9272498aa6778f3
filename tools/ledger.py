"""Write the appendix page's table of checked equations from book/checked.json.

python tools/ledger.py
"""

import json
import sys
from pathlib import Path

from labels import scan

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("book/text/appendix/what_is_checked.md")
BEGIN, END = "% ledger: begin", "% ledger: end"
HEADER = "| equation | page | by | cases | allowed | found |\n|---|---|---|---|---|---|\n"


def equations_in_text(root: Path) -> dict[str, str]:
    """Every `eq-` label of the book, in the order of its files, with its chapter."""
    texts = root / "book/text"
    return {
        equation.label: path.relative_to(texts).with_suffix("").as_posix()
        for path in sorted(texts.rglob("*.md"))
        for equation in scan(path.read_text(encoding="utf-8-sig")).equations
        if equation.label and equation.label.startswith("eq-")
    }


def table(root: Path) -> str:
    """The ledger as a Markdown table, one row for each route of each equation."""
    ledger = json.loads((root / "book/checked.json").read_text(encoding="utf-8"))
    rows = []
    for label, chapter in equations_in_text(root).items():
        for route, entry in ledger.get(label, {}).items():
            found = entry["largest_error"]
            rows.append(
                f"| {{eq}}`{label}` {label.removeprefix('eq-').replace('-', ' ')} "
                f"| {{doc}}`/{chapter}` | {route} | {entry['cases']} "
                f"| {entry['rtol']:.0e} | {f'{found:.0e}' if found else '0'} |"
            )
    return HEADER + "\n".join(rows) + "\n"


def with_table(page: str, new: str) -> str:
    """The page with what stands between its two marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.as_posix()}: the lines '{BEGIN}' and '{END}' must both stand")
    mark = begin + rest.partition("\n")[0]
    return f"{before}{mark}\n\n{new}\n{end}{after}"


def main() -> int:
    path = ROOT / PAGE
    path.write_text(
        with_table(path.read_text(encoding="utf-8"), table(ROOT)),
        encoding="utf-8",
        newline="\n",
    )
    print(f"{PAGE.as_posix()}: written; next, type: make notebooks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
