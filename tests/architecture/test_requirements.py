"""Every requirement has a test, every test names a requirement; and the check itself can fail."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.architecture.requirement_scan import (
    find_faults,
    format_faults,
    read_proofs,
    read_proofs_under,
)
from tests.requirements import REQUIREMENTS, proves

pytestmark = proves("PROJECT-REQUIREMENTS")

TESTS = Path(__file__).parents[1]
NO_IDS: frozenset[str] = frozenset()


def test_every_requirement_is_proved_and_every_test_proves_one() -> None:
    faults = find_faults(read_proofs_under(TESTS), REQUIREMENTS)

    assert not faults, format_faults(faults)


def test_every_requirement_has_section_and_behaviour() -> None:
    for requirement in REQUIREMENTS.values():
        assert requirement.section, requirement.id
        assert requirement.behaviour.endswith("."), requirement.id
        assert requirement.divergence.endswith(".") or not requirement.divergence, requirement.id


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param(
            """
            @proves("A", "B")
            def test_one(): ...
            """,
            {"t.py::test_one": {"A", "B"}},
            id="decorated function",
        ),
        pytest.param(
            """
            @requirements.proves("A")
            async def test_one(): ...
            """,
            {"t.py::test_one": {"A"}},
            id="async function, qualified name",
        ),
        pytest.param(
            """
            pytestmark = [proves("A"), pytest.mark.usefixtures("clock")]
            @proves("B")
            def test_one(): ...
            def test_two(): ...
            """,
            {"t.py::test_one": {"A", "B"}, "t.py::test_two": {"A"}},
            id="module mark",
        ),
        pytest.param(
            """
            @proves("A")
            class TestThing:
                pytestmark = proves("B")
                @proves("C")
                def test_one(self): ...
            """,
            {"t.py::TestThing::test_one": {"A", "B", "C"}},
            id="class",
        ),
        pytest.param(
            """
            @pytest.mark.parametrize("n", [pytest.param(1, marks=proves("A"))])
            def test_one(n): ...
            """,
            {"t.py::test_one": {"A"}},
            id="marked case",
        ),
        pytest.param(
            """
            TestTasks = proves("A")(TaskMachine.TestCase)
            """,
            {"t.py::TestTasks": {"A"}},
            id="machine",
        ),
        pytest.param(
            """
            def test_one(): ...
            TestTasks = TaskMachine.TestCase
            """,
            {"t.py::test_one": NO_IDS, "t.py::TestTasks": NO_IDS},
            id="nothing named",
        ),
        pytest.param(
            """
            @proves(SOME_ID)
            def test_one(): ...
            """,
            {"t.py::test_one": {"SOME_ID"}},
            id="not a literal",
        ),
        pytest.param(
            """
            CASES = [1]
            TestData = dict
            @proves("A")
            def make_case(): ...
            """,
            {},
            id="no tests",
        ),
    ],
)
def test_scan_reads_the_ids_of_a_source(source: str, found: dict[str, set[str]]) -> None:
    assert {p.test: p.requirements for p in read_proofs(dedent(source), "t.py")} == found


def test_scan_reads_all_files_under_a_folder(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "core").mkdir(parents=True)
    (tests / "core" / "test_a.py").write_text("def test_one(): ...")
    (tests / "contract.py").write_text("class Contract:\n    def test_two(self): ...")

    assert [p.test for p in read_proofs_under(tests)] == [
        "tests/contract.py::Contract::test_two",
        "tests/core/test_a.py::test_one",
    ]


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        pytest.param("@proves('A')\ndef test_one(): ...", {}, id="all well"),
        pytest.param("", {"requirements without a test": ["A"]}, id="an unproved requirement"),
        pytest.param(
            "@proves('A')\ndef test_one(): ...\ndef test_two(): ...",
            {"tests that name no requirement": ["t.py::test_two"]},
            id="a test that proves nothing",
        ),
        pytest.param(
            "@proves()\ndef test_one(): ...\n@proves('A')\ndef test_two(): ...",
            {"tests that name no requirement": ["t.py::test_one"]},
            id="an empty mark",
        ),
        pytest.param(
            "@proves('A', 'B')\ndef test_one(): ...",
            {"tests that name an unknown requirement": ["t.py::test_one: B"]},
            id="an id that is not in the manifest",
        ),
    ],
)
def test_each_fault_is_found(source: str, faults: dict[str, list[str]]) -> None:
    assert find_faults(read_proofs(source, "t.py"), ["A"]) == faults


def test_message_lists_the_cases_under_their_fault() -> None:
    faults = find_faults(read_proofs("def test_one(): ...", "t.py"), ["A", "B"])

    assert format_faults(faults).splitlines() == [
        "requirements without a test:",
        "  A",
        "  B",
        "tests that name no requirement:",
        "  t.py::test_one",
    ]
