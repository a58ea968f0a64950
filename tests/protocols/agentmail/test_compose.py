"""Composed letters: strict mode accepts them, and parsing gives the same fields back."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.protocols.agentmail import Draft, Parser, compose
from dragoman.protocols.agentmail.grammar import escape_text, join_list, split_list, unescape_text
from dragoman.protocols.agentmail.wire import (
    CHECKPOINT_REASONS,
    FAILURE_TYPES,
    ISSUE_TYPES,
    MESSAGE_TYPES,
    SPAWN_STATUSES,
)
from dragoman.text.safe_text import safe_text
from tests.protocols.agentmail.letters import DRAFTS
from tests.requirements import proves

pytestmark = proves("MAIL-COMPOSE")

PIECES = [
    "## Question",
    "# x",
    "### deep",
    "```",
    "````py",
    "~~~",
    "\\## x",
    "\\\\```",
    "\\",
    "Bead: z-9",
    "- Status: FAILED",
    "**Tests:** PASS",
    "- a",
    "`",
    "`x`",
    "**",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "\u00a0",
    ",",
    "\\,",
    ":",
    "]",
    "[",
    "DONE",
    "x",
    "ß",
    "\u2028",
    "\x1b[31m",
    "\ud800",
    "> q",
    "<b>",
    "%",
    "|",
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
TEXTS = HOSTILE | st.text(st.characters(exclude_categories=[]), max_size=40)
NONEMPTY = TEXTS.map(lambda text: "x" if not safe_text(text).strip() else text)
"""Any text for a field, but never an empty one."""
FILES = st.lists(TEXTS, max_size=4)
PERCENT = st.integers(0, 100)

DRAFT_STRATEGIES: dict[str, st.SearchStrategy[Draft]] = {
    "BEAD_ACCEPTED": st.builds(
        compose.draft,
        st.just("BEAD_ACCEPTED"),
        NONEMPTY,
        title=NONEMPTY,
        started_at=st.just("2026-01-31T10:00:00Z"),
    ),
    "PROGRESS": st.builds(
        compose.draft,
        st.just("PROGRESS"),
        NONEMPTY,
        step=NONEMPTY,
        status=NONEMPTY,
        context_usage=PERCENT,
        files_touched=FILES,
    ),
    "HELP_REQUEST": st.builds(
        compose.draft,
        st.just("HELP_REQUEST"),
        NONEMPTY,
        issue_type=st.sampled_from(ISSUE_TYPES),
        problem=NONEMPTY,
        what_tried=NONEMPTY,
        question=NONEMPTY,
        files_touched=FILES,
    ),
    "HELP_RESPONSE": st.builds(compose.draft, st.just("HELP_RESPONSE"), NONEMPTY, guidance=NONEMPTY)
    | st.builds(compose.draft, st.just("HELP_RESPONSE"), guidance=NONEMPTY.map("Well, {}".format)),
    "FAILED": st.builds(
        compose.draft,
        st.just("FAILED"),
        NONEMPTY,
        failure_type=st.sampled_from(FAILURE_TYPES),
        reason=NONEMPTY,
        internal_attempts=st.integers(0, 999_999_999),
        partial_commit_sha=TEXTS,
        files=FILES,
        recommendation=TEXTS,
    ),
    "CHECKPOINT": st.builds(
        compose.draft,
        st.just("CHECKPOINT"),
        NONEMPTY,
        checkpoint_reason=st.sampled_from(CHECKPOINT_REASONS),
        partial_commit_sha=NONEMPTY,
        progress=NONEMPTY,
        context_usage=PERCENT,
        next_steps=NONEMPTY,
    ),
    "SPAWN_REQUEST": st.builds(
        compose.draft,
        st.just("SPAWN_REQUEST"),
        NONEMPTY,
        orchestrator=NONEMPTY,
        resume=st.booleans(),
        partial_commit_sha=NONEMPTY,
    )
    | st.builds(
        compose.draft,
        st.just("SPAWN_REQUEST"),
        NONEMPTY,
        orchestrator=NONEMPTY,
        resume=st.just(value=False),
        partial_commit_sha=st.just(""),
    ),
    "SPAWN_ACK": st.builds(
        compose.draft,
        st.just("SPAWN_ACK"),
        NONEMPTY,
        status=st.sampled_from(SPAWN_STATUSES),
        session=NONEMPTY,
    ),
    **{
        kind: st.builds(
            compose.draft,
            st.just(kind),
            NONEMPTY,
            commit_sha=NONEMPTY,
            files=FILES.map(lambda some: [*some, "a"]),
            tests_pass=st.booleans(),
            lint_pass=st.booleans(),
            build_pass=st.booleans(),
            summary=NONEMPTY,
        )
        for kind in ("OFFERING_READY", "DONE")
    },
}


def round_trip(draft: Draft) -> Any:
    """Render a draft and parse it strictly."""
    letter = compose.render(draft)
    return Parser(strict=True).parse({"subject": letter.subject, "body_md": letter.body_md})


@pytest.mark.parametrize("kind", DRAFT_STRATEGIES)
@given(st.data())
def test_composed_letter_parses_back_to_its_draft(kind: str, data: st.DataObject) -> None:
    draft = data.draw(DRAFT_STRATEGIES[kind])
    message = round_trip(draft)

    assert message.parsed == draft.parsed
    assert (message.type, message.ack_required) == (kind, draft.ack_required)


def test_every_type_can_be_drafted() -> None:
    assert set(DRAFT_STRATEGIES) == set(MESSAGE_TYPES)


@given(NONEMPTY)
def test_text_is_kept_except_controls_and_surrounding_space(text: str) -> None:
    draft = compose.draft(
        "HELP_REQUEST", "a-1", issue_type="STUCK", problem=text, what_tried="x", question="y"
    )
    assert draft.parsed.problem == safe_text(text).strip()


@given(HOSTILE.map(safe_text))
@example("```\n## a\n```\n## b\n```\n## c")
@example("~~~\n```\n~~~\n\\# a")
def test_escaping_is_reversible(text: str) -> None:
    assert unescape_text(escape_text(text)) == text


@given(st.lists(st.text("ab,\\ ", min_size=1).map(str.strip).filter(bool), max_size=5))
def test_list_of_names_with_commas_and_backslashes_is_reversible(names: list[str]) -> None:
    assert split_list(join_list(names)) == tuple(names)


def test_file_name_that_begins_with_a_checkbox_is_kept() -> None:
    names = ("[x] a.py", "[ ] b.py", "c.py")
    draft = compose.draft(
        "HELP_REQUEST",
        "a-1",
        issue_type="STUCK",
        problem="p",
        what_tried="x",
        question="y",
        files_touched=names,
    )
    assert round_trip(draft).parsed.files_touched == names


def test_closed_code_blocks_and_deeper_headings_are_not_escaped() -> None:
    text = "### Log\n```sh\n# comment\n```\nthen"
    assert escape_text(text) == text
    assert escape_text("# a\n```\n## b") == "\\# a\n\\```\n\\## b"


EXPECTED = {
    "BEAD_ACCEPTED": """\
Accepted bead: ol-527.1
Title: Add auth
Starting implementation at: 2026-01-31T10:00:00Z
""",
    "HELP_REQUEST": """\
Bead: ol-527.1
Issue Type: STUCK

## Problem
It hangs.

## What I Tried
- waiting
- shouting

## Files Touched
- src/auth.py
- tests/test_auth.py

## Question
Why?
""",
    "HELP_RESPONSE": """\
Bead: ol-527.1

Use lib/auth.

Really.
""",
    "DONE": """\
Bead: ol-527.1
Status: DONE

## Changes
- Commit: abc123d
- Files: src/auth.py, tests/test_auth.py

## Self-Validation
- Tests: PASS
- Lint: PASS
- Build: FAIL

## Summary
Added JWT.
""",
    "FAILED": """\
Bead: ol-527.1
Status: FAILED

## Failure
Type: TESTS_FAIL
Reason: two tests fail
Internal Attempts: 3

## Partial Progress
- Commit: ghi789a
- Files: src/auth.py, tests/test_auth.py

## Recommendation
Check the database.
""",
    "SPAWN_REQUEST": """\
Issue: ol-527.1
Resume: true
Checkpoint: jkl012b
Orchestrator: crank-1
""",
}


@pytest.mark.parametrize(("kind", "body"), EXPECTED.items())
def test_rendered_letter_matches_the_document(kind: str, body: str) -> None:
    letter = compose.render(DRAFTS[kind]())
    assert (letter.subject, letter.body_md) == (f"[ol-527.1] {kind}", body)


@pytest.mark.parametrize("bead", ["two words", "a]b", "done", "DONE"])
def test_id_that_brackets_cannot_hold_is_written_in_the_body_only(bead: str) -> None:
    draft = compose.draft("HELP_RESPONSE", bead, guidance="x")
    assert compose.render(draft).subject == "HELP_RESPONSE"
    assert round_trip(draft).bead_id == bead


@pytest.mark.parametrize(
    "guidance", ["Go left.", "Go left.\nBead: a-1\n## Problem\nx", "- Files: a\n\n```\nx"]
)
def test_help_response_can_be_rendered_without_a_bead(guidance: str) -> None:
    draft = compose.draft("HELP_RESPONSE", guidance=guidance)
    assert compose.render(draft) == compose.Rendered("HELP_RESPONSE", f"{guidance}\n")
    assert round_trip(draft).parsed == draft.parsed


REFUSED: dict[str, Callable[[], Draft]] = {
    "bead_id is empty": lambda: compose.draft("SPAWN_ACK", " ", status="failed"),
    "guidance begins with 'Bead: a-1'": lambda: compose.draft(
        "HELP_RESPONSE", guidance="Bead: a-1\nGo."
    ),
    "guidance is empty": lambda: compose.draft("HELP_RESPONSE", "a-1", guidance="\n"),
    "title is empty": lambda: compose.draft(
        "BEAD_ACCEPTED", "a-1", title="", started_at="2026-01-31T10:00:00Z"
    ),
    "started_at is 'soon'": lambda: compose.draft(
        "BEAD_ACCEPTED", "a-1", title="x", started_at="soon"
    ),
    "context_usage is '101%'": lambda: compose.draft(
        "PROGRESS", "a-1", step="s", status="s", context_usage=101
    ),
    "issue_type is 'ODD': use one of STUCK": lambda: compose.draft(
        "HELP_REQUEST", "a-1", issue_type="ODD", problem="p", what_tried="t", question="q"
    ),
    "internal_attempts is '-1'": lambda: compose.draft(
        "FAILED", "a-1", failure_type="ERROR", reason="r", internal_attempts=-1
    ),
    "status is 'started': use one of spawned": lambda: compose.draft(
        "SPAWN_ACK", "a-1", status="started"
    ),
    "session is empty": lambda: compose.draft("SPAWN_ACK", "a-1", status="spawned"),
    "partial_commit_sha is empty": lambda: compose.draft(
        "SPAWN_REQUEST", "a-1", orchestrator="c", resume=True
    ),
    "files is empty": lambda: compose.draft(
        "DONE",
        "a-1",
        commit_sha="c",
        files=[],
        tests_pass=True,
        lint_pass=True,
        build_pass=True,
        summary="s",
    ),
}


@pytest.mark.parametrize(("problem", "write"), REFUSED.items())
def test_drafts_that_strict_mode_would_refuse_are_refused(
    problem: str, write: Callable[[], Draft]
) -> None:
    with pytest.raises(ValueError, match=f"^{problem}"):
        write()


def test_values_may_be_given_as_a_letter_has_them() -> None:
    progress = {"step": "s", "status": "going", "files_touched": "a.py, b.py"}
    typed = compose.draft("PROGRESS", "a-1", **progress, context_usage="45%")
    assert (typed.parsed.context_usage, typed.parsed.files_touched) == (45, ("a.py", "b.py"))
    with pytest.raises(ValueError, match="'colour' is no field of a PROGRESS: it has step, stat"):
        compose.draft("PROGRESS", "a-1", colour="red")


def test_enumeration_values_are_case_insensitive() -> None:
    request = compose.draft(
        "HELP_REQUEST", "a-1", issue_type="stuck", problem="p", what_tried="t", question="q"
    )
    assert request.parsed.issue_type == "STUCK"


@proves("MAIL-ACK-DEFAULT")
def test_composed_letters_want_an_ack_by_their_type() -> None:
    wanting = {kind for kind, draft in DRAFTS.items() if draft().ack_required}
    assert wanting == {"HELP_REQUEST", "OFFERING_READY", "SPAWN_REQUEST"}
