"""Inventory of the collected tests by requirement, to prove that a refactoring lost none.

    uv run python -m tests.inventory > before.txt      # list: requirement, test, number of cases
    uv run python -m tests.inventory before.txt        # compare: equal but for names, or exit 1

Names of tests may change between two lists. The number of tests for each requirement, and the
number of cases of each test, may not.

"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

Cases = dict[str, Counter[str]]
"""Requirement -> test -> number of its cases."""


class Collector:
    """Plugin that keeps what pytest collects."""

    def __init__(self) -> None:
        self.cases: Cases = defaultdict(Counter)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count the cases of each test under each requirement that it names."""
        for item in session.items:
            test = item.nodeid.partition("[")[0]
            for requirement in {id for mark in item.iter_markers("proves") for id in mark.args}:
                self.cases[requirement][test] += 1


def collect() -> Cases:
    """Collect all tests without running them."""
    collector = Collector()
    with redirect_stdout(StringIO()) as printed:
        failed = pytest.main(["--collect-only", "-qq", "-n0"], plugins=[collector])
    if failed:
        sys.exit(f"the tests cannot be collected:\n{printed.getvalue()}")
    return collector.cases


def format_lines(cases: Cases) -> Iterable[str]:
    """Format one line for each test of each requirement."""
    for requirement, tests in sorted(cases.items()):
        for test, number in sorted(tests.items()):
            yield f"{requirement}\t{test}\t{number}"


def parse_lines(text: str) -> Cases:
    """Parse what `format_lines` wrote."""
    cases: Cases = defaultdict(Counter)
    for line in text.splitlines():
        requirement, test, number = line.split("\t")
        cases[requirement][test] = int(number)
    return cases


def compare(before: Mapping[str, Counter[str]], after: Mapping[str, Counter[str]]) -> list[str]:
    """Compare two inventories; one sentence for each requirement whose tests differ in number."""
    differences: list[str] = []
    for requirement in sorted({*before, *after}):
        old = sorted(before.get(requirement, Counter()).values())
        new = sorted(after.get(requirement, Counter()).values())
        if old != new:
            differences.append(
                f"{requirement}: {len(old)} tests with {sum(old)} cases before, "
                f"{len(new)} tests with {sum(new)} cases now"
            )
    return differences


def main() -> None:
    """Print the inventory, or compare it with the file that is named."""
    cases = collect()
    if not sys.argv[1:]:
        sys.stdout.writelines(f"{line}\n" for line in format_lines(cases))
        return
    before = parse_lines(Path(sys.argv[1]).read_text())
    differences = compare(before, cases)
    sys.stdout.writelines(f"{line}\n" for line in differences)
    total = sum(sum(tests.values()) for tests in cases.values())
    if differences:
        sys.exit(f"{len(differences)} requirements have other tests than {sys.argv[1]} lists")
    sys.stdout.write(f"equal but for names: {len(cases)} requirements, {total} cases\n")


if __name__ == "__main__":
    main()
