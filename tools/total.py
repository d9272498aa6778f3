"""One total over several test runs, from their JUnit reports; fails unless all passed.

python tools/total.py REPORT.xml ...
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def total(reports: list[Path]) -> tuple[int, int, int]:
    """Tests passed, failed and skipped; a report that is missing counts as a failure."""
    passed = failed = skipped = 0
    for report in reports:
        try:
            suites = list(ET.parse(report).iter("testsuite"))
        except (OSError, ET.ParseError):
            print(f"{report}: no report, so this run did not finish", file=sys.stderr)
            failed += 1
            continue
        for suite in suites:
            tests, failures, errors, skips = (
                int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
            )
            failed += failures + errors
            skipped += skips
            passed += tests - failures - errors - skips
    return passed, failed, skipped


def main(arguments: list[str]) -> int:
    passed, failed, skipped = total([Path(name) for name in arguments])
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or skipped or not passed else 0  # a skipped test checks nothing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
