"""Grammar of bodies: labels, lists, sections, code blocks and field values."""

from typing import Any

import pytest

from dragoman.protocols.agentmail import Parser
from tests.protocols.agentmail.letters import fields, parse
from tests.requirements import proves

pytestmark = proves("MAIL-FIELDS")

LABELS = [
    "Step: two",
    "step: two",
    "STEP:two",
    "  Step : two  ",
    "- Step: two",
    "* Step: two",
    "+ Step: two",
    "• Step: two",
    "  -  Step: two",
    "**Step:** two",
    "**Step**: two",
    "**Step: two**",
    "__Step:__ two",
    "- **Step:** two",
    "\tStep:\ttwo",
    "Step:\u00a0two",
    "Step: two\r",
    "1. Step: two",
    "12) **Step:** two",
    "- [ ] Step: two",
    "* [x] **Step:** two",
    "1. [X] Step: two",
    "[ ] Step: two",
    "Step:\nStep: two",
    "Step: two\nStep: three",
    "# A title of its own\nStep: two",
    "### Details\nStep: two",
    "```\nStep: code\n```\nStep: two",
    "~~~ text\nStep: code\n```\n~~~~\nStep: two",
    "text\rStep: two\rmore",
]


@pytest.mark.parametrize("body", LABELS)
def test_label_spellings_are_recognized(body: str) -> None:
    assert fields("PROGRESS", body).step == "two"


@pytest.mark.parametrize(
    "body",
    [
        "> Step: two",
        "a Step: two",
        "-Step: two",
        "1.Step: two",
        "1. 2. Step: two",
        "- [x]Step: two",
        "- [y] Step: two",
        "- [x] Step",
        "Steps: two",
        "Step two",
        "Step\n: two",
        "```\nStep: two",
        "~~~\nStep: two\n```",
        "text\u2028Step: two",
        "text\x0bStep: two",
        "Step:",
        f"Step{' ' * 100}: two",
    ],
)
def test_lines_that_resemble_labels_are_not_labels(body: str) -> None:
    assert fields("PROGRESS", body).step == ""


def test_inline_code_opens_no_fence() -> None:
    assert fields("PROGRESS", "```x``` is code\nStep: two").step == "two"


LISTS = {
    "Files touched: a.py": ("a.py",),
    "Files touched: a.py, b.py ,, c d.py,": ("a.py", "b.py", "c d.py"),
    "Files touched: ,": (),
    "Files touched:\n- a.py\n* b.py": ("a.py", "b.py"),
    "Files touched:\n\n  - a.py\n\n  - b.py\ntext\n- c.py": ("a.py", "b.py"),
    "- Files touched:\n- Bead: a-1": (),
    "Files touched:\n- a.py\n- Bead: a-1": ("a.py",),
    "Files touched:\n- a.py\n-\n- b.py": ("a.py", "b.py"),
    r"Files touched: a\,b.py, c\d.py": ("a,b.py", r"c\d.py"),
    "Files touched:\n1. a.py\n2) b, c.py\ntext\n3. d.py": ("a.py", "b, c.py"),
    "## Files Touched\n1. a.py\n2. b.py": ("a.py", "b.py"),
    "Files touched:\n1. [x] a.py\n2. [ ] [x] b.py": ("a.py", "[x] b.py"),
    "## Files Touched\n- [ ] c.py\n[x] d.py": ("c.py", "[x] d.py"),
    "## Files Touched\n- 1. a.py\n2.b.py": ("1. a.py", "2.b.py"),
    "## Files Touched\na.py\n- b, c.py\n\nd.py, e.py": ("a.py", "b, c.py", "d.py", "e.py"),
    "## files touched\n```\na.py\n```\nb.py": ("a.py", "b.py"),
}


@pytest.mark.parametrize(("body", "files"), LISTS.items())
@pytest.mark.parametrize("type", ["PROGRESS", "HELP_REQUEST"])
def test_file_list_spellings_are_recognized(type: str, body: str, files: tuple[str, ...]) -> None:
    assert fields(type, body).files_touched == files


def test_nested_file_list_under_changes_is_parsed() -> None:
    parsed = fields("DONE", "## Changes\n- Files:\n  - a.py\n  - b.py\n- Commit: abc")
    assert (parsed.files, parsed.commit_sha) == (("a.py", "b.py"), "abc")


SECTIONS = {
    "## Problem\nx": "x",
    "## problem:\nx": "x",
    "## **Problem** ##\nx": "x",
    "#\tProblem\nx": "x",
    "   ### Problem\nx": "x",
    "## Problem\r\nx\r\ny\r\n": "x\ny",
    "## Problem\n\n\nx\n\ny\n\n": "x\n\ny",
    "## Problem\nx ## Question\ny": "x ## Question\ny",
    "## Problem\nx\n##Question": "x\n##Question",
    "## Problem\nx\n    ## Question": "x\n    ## Question",
    "## Problem\nx\n####### seven": "x\n####### seven",
    "## Problem\nx\n### Question\ny": "x\n### Question\ny",
    "## Problem\nx\n# Other\ny": "x",
    "### Problem\nx\n## Other\ny": "x",
    "## Problem\n\n## Problem\nx": "x",
    "## Problem\nBead: z-9\nx": "Bead: z-9\nx",
    "## Problem\n~~~\n# x\n~~~": "~~~\n# x\n~~~",
    "## Problem\n- x\n  ```\n  ## Question\n  ```\ny": "- x\n  ```\n  ## Question\n  ```\ny",
    "## Problem\n````\n```\n## x\n````\ny": "````\n```\n## x\n````\ny",
    "## Problem\n```\nnever ends\n## Question\ny": "```\nnever ends\n## Question\ny",
    "## Problem\n\\## x\n\\\\# y\n\\n": "## x\n\\# y\n\\n",
}


@pytest.mark.parametrize(("body", "problem"), SECTIONS.items())
def test_section_text_ends_at_the_next_heading_of_its_level(body: str, problem: str) -> None:
    parsed = fields("HELP_REQUEST", body)
    assert (parsed.problem, parsed.question, parsed.bead_id) == (problem, "", "")


def test_labels_count_in_their_section_and_its_subsections() -> None:
    body = "## Changes\n### Code\n- Commit: abc\n### Self-Validation\n- Tests: ok\n- Files: x"
    parsed = fields("DONE", body)
    assert (parsed.commit_sha, parsed.tests_pass, parsed.files) == ("abc", True, ())


def test_unknown_section_does_not_hide_later_fields() -> None:
    parsed = fields("DONE", "## Changes\n- Commit: abc\n## Notes\nStatus: done\n## Summary\ns")
    assert (parsed.commit_sha, parsed.status, parsed.summary) == ("abc", "DONE", "s")


VALUES: list[tuple[str, str, str, Any, str]] = [
    ("PROGRESS", "Context usage: 0%", "context_usage", 0, ""),
    ("PROGRESS", "Context usage: 45 %", "context_usage", 45, ""),
    ("PROGRESS", "Context usage: +7", "context_usage", 7, ""),
    ("PROGRESS", "Context usage: 101%", "context_usage", 101, "bad_percentage"),
    ("PROGRESS", "Context usage: -1%", "context_usage", -1, "bad_percentage"),
    ("PROGRESS", "Context usage: 4.5%", "context_usage", None, "bad_percentage"),
    ("PROGRESS", "Context usage: ٤٥%", "context_usage", None, "bad_percentage"),
    *[
        ("PROGRESS", f"Context usage: {text}", "context_usage", 45, "bad_percentage")
        for text in (
            "~45%",
            "about 45%",
            "45.0%",
            "45 percent",
            "45 Percent.",
            "45% of 200k",
            "**~45 %**",
        )
    ],
    *[
        ("PROGRESS", f"Context usage: {text}", "context_usage", None, "bad_percentage")
        for text in (
            "45.5%",
            "4_5%",
            "4 5%",
            "0x45%",
            "x45%",
            "~-45%",
            "~.45%",
            "40-45%",
            "40 to 45%",
            "45%, was 40%",
            "45%-50%",
            "45% to 50.5%",
            "about 45",
            "45 percentiles",
            "~4567890123%",
            "４45%",
        )
    ],
    ("PROGRESS", "Context usage: ²", "context_usage", None, "bad_percentage"),
    ("PROGRESS", "Context usage: %", "context_usage", None, "bad_percentage"),
    ("PROGRESS", f"Context usage: {'9' * 5000}", "context_usage", None, "bad_percentage"),
    ("FAILED", "## Failure\nInternal Attempts: 3", "internal_attempts", 3, ""),
    ("FAILED", "## Failure\nInternal Attempts: some", "internal_attempts", None, "bad_number"),
    ("FAILED", "## Failure\nInternal Attempts: -3", "internal_attempts", -3, "bad_number"),
    ("FAILED", "## Failure\nType: error", "failure_type", "ERROR", ""),
    ("FAILED", "## Failure\nType: odd one", "failure_type", "ODD ONE", "bad_value"),
    ("FAILED", "## Failure\nType: gro\u00df", "failure_type", "GRO\u00df", "bad_value"),
    ("FAILED", "Status: failed", "status", "FAILED", ""),
    ("FAILED", "Status: DONE", "status", "FAILED", "bad_value"),
    ("FAILED", "", "status", "FAILED", ""),
    ("DONE", "Status: done", "status", "DONE", ""),
    ("DONE", "Status: odd", "status", "ODD", "bad_value"),
    ("HELP_REQUEST", "Issue type: spec_unclear", "issue_type", "SPEC_UNCLEAR", ""),
    ("CHECKPOINT", "Reason: manual", "checkpoint_reason", "MANUAL", ""),
    ("SPAWN_ACK", "Status: Spawned", "status", "Spawned", ""),
    ("SPAWN_ACK", "Status: maybe", "status", "maybe", "bad_value"),
    ("SPAWN_REQUEST", "Resume: Yes", "resume", True, ""),
    ("SPAWN_REQUEST", "Resume: no", "resume", False, ""),
    ("SPAWN_REQUEST", "Resume: perhaps", "resume", None, "bad_verdict"),
    ("BEAD_ACCEPTED", "Starting implementation at: now", "started_at", "now", "bad_timestamp"),
    *[
        ("DONE", f"## Self-Validation\n- Tests: {spelling}", "tests_pass", verdict, "")
        for verdict, spellings in {
            True: ("PASS", "pass", "Passed", "true", "YES", "ok"),
            False: ("FAIL", "Failed", "false", "No"),
        }.items()
        for spelling in spellings
    ],
    ("DONE", "## Self-Validation\n- [ ] Tests: FAIL", "tests_pass", False, ""),
    ("DONE", "## Self-Validation\n- [x] Tests: FAIL", "tests_pass", False, ""),
    ("DONE", "## Self-Validation\n- [ ] Tests: PASS", "tests_pass", True, ""),
    ("DONE", "## Self-Validation\n- [x] Tests", "tests_pass", None, ""),
    ("DONE", "## Self-Validation\n- Tests: skipped", "tests_pass", None, "bad_verdict"),
    ("DONE", "## Self-Validation\n- Lint: 1", "lint_pass", None, "bad_verdict"),
    ("DONE", "## Self-Validation\n- Build: o\u212a", "build_pass", None, "bad_verdict"),
]


@pytest.mark.parametrize(("type", "body", "field", "value", "problem"), VALUES)
@proves("MAIL-STRICT")
def test_field_values_are_parsed_or_reported(
    type: str, body: str, field: str, value: Any, problem: str
) -> None:
    message = parse(type, body)
    assert getattr(message.parsed, field) == value
    assert [one.name for one in message.problems] == [problem] * bool(problem)
    assert all((one.field, one.line) == (field, len(body.split("\n"))) for one in message.problems)


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-31T10:00:00Z",
        "2026-01-31T10:00:00.123456789+05:30",
        "2026-01-31 10:00:00",
        "2026-01-31T10:00:00-0800",
        "20260131T100000Z",
    ],
)
def test_timestamps_keep_their_offset_and_spelling(time: str) -> None:
    message = parse("BEAD_ACCEPTED", f"Starting implementation at: {time}", timestamp=time)
    assert (message.parsed.started_at, message.timestamp) == (time, time)
    assert message.problems == ()


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-31",
        "2026-02-30T10:00:00Z",
        "10:00",
        "soon",
        "2026-01-31X10:00:00",
        "2026-W05-6T10:00",
        "2026W056T1000",
    ],
)
def test_invalid_timestamp_is_reported(time: str) -> None:
    (problem,) = parse("DONE", timestamp=time).problems
    assert (problem.name, problem.field) == ("bad_timestamp", "timestamp")


@pytest.mark.parametrize(
    ("body", "guidance"),
    [
        ("Use it.\n\n## How\nso", "Use it.\n\n## How\nso"),
        ("\nBead: a-1\n\nUse it.\nBead: b-2", "Use it.\nBead: b-2"),
        ("Bead: a-1", ""),
        ("Look: here", "Look: here"),
        ("", ""),
    ],
)
def test_guidance_is_the_whole_body(body: str, guidance: str) -> None:
    assert fields("HELP_RESPONSE", body).guidance == guidance


def _in_section(title: str, inner: str) -> str:
    return f"Bead: ol-1\n\n## {title}\n{inner}"


MULTILINE = [
    ("CHECKPOINT", _in_section("Progress", "- Description: {}\n- Context usage: 4%"), "progress"),
    ("FAILED", _in_section("Failure", "Reason: {}\nInternal Attempts: 2"), "reason"),
    ("PROGRESS", "Bead: ol-1\nStatus: {}\nContext usage: 4%", "status"),
]


@pytest.mark.parametrize(("kind", "body", "field"), MULTILINE)
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("parser done\n  lexer half done", "parser done\nlexer half done"),
        ("parser done\nlexer half done", "parser done\nlexer half done"),
        ("\n  parser done", "parser done"),
        ("done:\n  - parser\n\tRest: lexer", "done:\n- parser\nRest: lexer"),
        ("red\nsee https://ci.example/7", "red\nsee https://ci.example/7"),
        ("one\n\n  two", "one"),
        ("one\n- two", "one"),
        ("red\nError: no such file\nTODO: look", "red\nError: no such file\nTODO: look"),
        (
            "red\n**Note:** flaky\nhttps://ci.example/7",
            "red\n**Note:** flaky\nhttps://ci.example/7",
        ),
        ("one\nBEAD: two", "one"),
        ("one\n**Accepted bead:** two", "one"),
        ("one\n```\ntwo\n```", "one"),
        ("one\n#### two", "one"),
    ],
)
def test_text_continues_below_its_label(
    kind: str, body: str, field: str, written: str, text: str
) -> None:
    assert getattr(fields(kind, body.format(written)), field) == text


@pytest.mark.parametrize(
    ("kind", "label", "text"),
    [
        ("FAILED", "Commit", "red"),
        ("FAILED", "Description", "red\nDescription: x"),
        ("CHECKPOINT", "Reason", "red"),
        ("CHECKPOINT", "Files", "red\nFiles: x"),
    ],
)
def test_only_labels_of_the_message_type_end_a_text(kind: str, label: str, text: str) -> None:
    body, field = next((body, field) for of, body, field in MULTILINE if of == kind)
    assert getattr(fields(kind, body.format(f"red\n{label}: x")), field) == text


@pytest.mark.parametrize("label", ["**Reason:**", "Reason:", "- Reason:"])
def test_indented_label_is_part_of_the_text(label: str) -> None:
    broken = "the build broke\nTypeError: x\n  Type: mismatch\n\tInternal Attempts: 9\nmore"
    inner = f"{label} {broken}\nInternal Attempts: 2"
    parsed = fields("FAILED", _in_section("Failure", inner))
    assert (parsed.reason, parsed.internal_attempts) == (
        "the build broke\nTypeError: x\nType: mismatch\nInternal Attempts: 9\nmore",
        2,
    )


def test_equally_indented_labels_end_a_text() -> None:
    inner = "  Reason: the build broke\n    Commit: none\n  Internal Attempts: 2"
    parsed = fields("FAILED", _in_section("Failure", inner))
    assert (parsed.reason, parsed.internal_attempts) == ("the build broke\nCommit: none", 2)


def test_strict_mode_reads_continued_text() -> None:
    body = "Bead: ol-1\nStep: 1\nStatus: red\nError: no such file\nContext usage: 4%"
    row = {"subject": "PROGRESS", "body_md": body}
    assert Parser(strict=True).parse(row).parsed.status == "red\nError: no such file"


MARKED = [
    ("PROGRESS", "**Bead:** `ol-7`", "bead_id", "ol-7"),
    ("PROGRESS", "**Bead: `ol-7`**", "bead_id", "ol-7"),
    ("PROGRESS", "Bead: **`ol-7`**", "bead_id", "ol-7"),
    ("DONE", "## Changes\n- Commit: `abc1234`", "commit_sha", "abc1234"),
    ("DONE", "## Changes\n- Files: `a.py`, b.py", "files", ("a.py", "b.py")),
    ("DONE", "## Changes\n- Files: **/a/**", "files", ("**/a/**",)),
    ("DONE", "## Self-Validation\n- Tests: **PASS**", "tests_pass", True),
    ("HELP_REQUEST", "## Files Touched\n- `a, b.py`", "files_touched", ("a, b.py",)),
    ("SPAWN_ACK", "Status: **spawned**", "status", "spawned"),
    ("SPAWN_ACK", "Session: ` s-1 `", "session", "s-1"),
    ("SPAWN_ACK", "Session: `a` or `b`", "session", "`a` or `b`"),
    ("SPAWN_ACK", "Session: ``", "session", "``"),
    ("PROGRESS", "Status: `make` fails in `lib`", "status", "`make` fails in `lib`"),
    ("PROGRESS", "Status: **red**", "status", "**red**"),
]


@pytest.mark.parametrize(("kind", "body", "field", "value"), MARKED)
def test_markup_around_values_is_stripped_except_in_texts(
    kind: str, body: str, field: str, value: Any
) -> None:
    assert getattr(fields(kind, body), field) == value


def test_invalid_verdict_names_the_allowed_values() -> None:
    (resume,) = parse("SPAWN_REQUEST", "Issue: ol-1\nResume: perhaps").problems
    assert resume.text == "resume is 'perhaps': use true or false"
    (tests,) = parse("DONE", "Bead: ol-1\n## Self-Validation\n- Tests: mostly").problems
    assert tests.text == "tests_pass is 'mostly': use PASS or FAIL"


@pytest.mark.parametrize(
    ("kind", "body", "misplaced"),
    [
        ("DONE", "Tests: FAIL\nCommit: abc", [("tests_pass", 1), ("commit_sha", 2)]),
        ("FAILED", "Bead: a-1\n- **Type:** ERROR\n## Failure\nReason: r", [("failure_type", 2)]),
        ("FAILED", "Type: ERROR\n## Failure\nType: BUILD_FAIL", []),
        ("FAILED", "## Failure\nType: ERROR\n## Notes\nType: odd", []),
        ("FAILED", "## Failure\nReason: see\n  Commit: abc", []),
        ("FAILED", "Type:\nCommit: ", []),
        ("CHECKPOINT", "## Progress\n- Commit: c\n- Reason: MANUAL", [("checkpoint_reason", 3)]),
        ("DONE", "## Changes\nBead: a-1", [("bead_id", 2)]),
        ("[a-1] DONE", "## Changes\nBead: a-1", []),
        ("DONE", "## Summary\nTests: FAIL\n```\nBuild: FAIL\n```", []),
        ("PROGRESS", "Commit: abc", []),
    ],
)
def test_misplaced_fields_are_reported(
    kind: str, body: str, misplaced: list[tuple[str, int]]
) -> None:
    problems = Parser().parse({"subject": kind, "body_md": body}).problems
    found = [one for one in problems if one.name == "misplaced_field"]
    assert [(one.field, one.line) for one in found] == misplaced


def test_misplaced_field_names_its_proper_heading() -> None:
    (one,) = Parser().parse({"subject": "FAILED", "body_md": "Type: SPEC_IMPOSSIBLE"}).problems
    assert one.text == (
        "failure_type is in the wrong section and not read: write a line Type: under a heading "
        "## Failure"
    )


def test_strict_mode_accepts_unneeded_misplaced_fields() -> None:
    body = "Bead: a-1\nCommit: abc\nStatus: FAILED\n## Failure\nType: ERROR\nReason: r\n"
    body += "Internal attempts: 2"
    strict = Parser(strict=True).parse({"subject": "FAILED", "body_md": body})
    assert [one.name for one in strict.problems] == ["misplaced_field"]
