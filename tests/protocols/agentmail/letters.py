"""Sample letters: one of each type as in the specification, and helpers to parse letters."""

from collections.abc import Callable
from typing import Any

from dragoman.protocols.agentmail import Draft, Message, Parsed, Parser, compose

CHECKS = {"tests_pass": True, "lint_pass": True, "build_pass": False}
FILES = ("src/auth.py", "tests/test_auth.py")

DRAFTS: dict[str, Callable[[], Draft]] = {
    "BEAD_ACCEPTED": lambda: compose.draft(
        "BEAD_ACCEPTED", "ol-527.1", title="Add auth", started_at="2026-01-31T10:00:00Z"
    ),
    "PROGRESS": lambda: compose.draft(
        "PROGRESS",
        "ol-527.1",
        step="Step 4 - implementing auth",
        status="Writing handler",
        context_usage=45,
        files_touched=FILES,
    ),
    "HELP_REQUEST": lambda: compose.draft(
        "HELP_REQUEST",
        "ol-527.1",
        issue_type="STUCK",
        problem="It hangs.",
        what_tried="- waiting\n- shouting",
        question="Why?",
        files_touched=FILES,
    ),
    "HELP_RESPONSE": lambda: compose.draft(
        "HELP_RESPONSE", "ol-527.1", guidance="Use lib/auth.\n\nReally."
    ),
    "OFFERING_READY": lambda: compose.draft(
        "OFFERING_READY",
        "ol-527.1",
        commit_sha="abc123d",
        files=FILES,
        **CHECKS,
        summary="Added JWT.",
    ),
    "DONE": lambda: compose.draft(
        "DONE", "ol-527.1", commit_sha="abc123d", files=FILES, **CHECKS, summary="Added JWT."
    ),
    "FAILED": lambda: compose.draft(
        "FAILED",
        "ol-527.1",
        failure_type="TESTS_FAIL",
        reason="two tests fail",
        internal_attempts=3,
        partial_commit_sha="ghi789a",
        files=FILES,
        recommendation="Check the database.",
    ),
    "CHECKPOINT": lambda: compose.draft(
        "CHECKPOINT",
        "ol-527.1",
        checkpoint_reason="CONTEXT_HIGH",
        partial_commit_sha="jkl012b",
        progress="half is done",
        context_usage=85,
        next_steps="1. finish\n2. test",
    ),
    "SPAWN_REQUEST": lambda: compose.draft(
        "SPAWN_REQUEST",
        "ol-527.1",
        orchestrator="crank-1",
        resume=True,
        partial_commit_sha="jkl012b",
    ),
    "SPAWN_ACK": lambda: compose.draft(
        "SPAWN_ACK", "ol-527.1", status="spawned", session="demigod-1"
    ),
}


def row(kind: str, **more: Any) -> dict[str, Any]:
    """Build the row of a sample letter that strict mode accepts."""
    letter = compose.render(DRAFTS[kind]())
    return {"subject": letter.subject, "body_md": letter.body_md, **more}


def parse(subject: str, body: str = "", **more: Any) -> Message:
    """Parse a letter leniently."""
    return Parser().parse({"subject": subject, "body_md": body, **more})


def fields(subject: str, body: str) -> Parsed:
    """Parse a letter leniently and return its fields."""
    return parse(subject, body).parsed
