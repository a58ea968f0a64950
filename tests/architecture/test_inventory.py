"""Comparison of two inventories of tests."""

from tests.inventory import Cases, compare, format_lines, parse_lines
from tests.requirements import proves

pytestmark = proves("PROJECT-REQUIREMENTS")

BEFORE = "A\ttests/t.py::test_one\t2\nA\ttests/t.py::test_two\t1\n"


def inventory(text: str) -> Cases:
    return parse_lines(text)


def test_lines_are_parsed_as_they_are_formatted() -> None:
    assert "".join(f"{line}\n" for line in format_lines(inventory(BEFORE))) == BEFORE


def test_renamed_tests_are_equal() -> None:
    renamed = BEFORE.replace("test_one", "test_first").replace("t.py", "u.py")

    assert compare(inventory(BEFORE), inventory(renamed)) == []


def test_lost_test_and_lost_case_are_named_by_requirement() -> None:
    lost_test = BEFORE.splitlines()[0]
    lost_case = BEFORE.replace("test_one\t2", "test_one\t1")

    assert compare(inventory(BEFORE), inventory(lost_test)) == [
        "A: 2 tests with 3 cases before, 1 tests with 2 cases now"
    ]
    assert compare(inventory(BEFORE), inventory(lost_case)) == [
        "A: 2 tests with 3 cases before, 2 tests with 2 cases now"
    ]
