"""Letters read from their rows, beside the standard library's decoding of the same rows."""

import json
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from time import perf_counter

import msgspec

from dragoman.protocols.agentmail import Draft, Parser, compose

_BODY = 600
_AT_ONCE = 100
"""So many are read between two looks at the clock."""

_BEAD = "ol-527.1"
_FILES = ("src/auth.py", "src/middleware/session.py", "tests/test_auth.py")
_CHECKS = {"tests_pass": True, "lint_pass": True, "build_pass": True}


def decoded(_: Path, seconds: float) -> float:
    """Rows per second that `json.loads` decodes, whatever they say."""
    return _per_second(json.loads, seconds)


def parsed(_: Path, seconds: float) -> float:
    """Letters per second, from the row's bytes to every field."""
    return _per_second(Parser().parse, seconds)


def _per_second(read: Callable[[bytes], object], seconds: float) -> float:
    letters = cycle(rows())
    start = perf_counter()
    done = 0
    while (passed := perf_counter() - start) < seconds:
        for _ in range(_AT_ONCE):
            read(next(letters))
        done += _AT_ONCE
    return done / passed


def rows() -> Sequence[bytes]:
    """A letter of each type, in a row of its own, each body 600 bytes long."""
    return [_row(number, make) for number, make in enumerate(_LETTERS, 1)]


def _row(number: int, make: Callable[[str], Draft]) -> bytes:
    more = "x" * (_BODY - len(compose.render(make("x")).body_md) + 1)
    draft = make(_words(len(more)))
    letter = compose.render(draft)
    return msgspec.json.encode(
        {
            "id": number,
            "from": "demigod-ol-527-1",
            "to": ["crank-ol527"],
            "thread_id": _BEAD,
            "subject": letter.subject,
            "body_md": letter.body_md,
            "importance": "normal",
            "ack_required": draft.ack_required,
            "created_ts": "2026-01-31T10:30:00.123456+00:00",
        }
    )


def _words(length: int) -> str:
    """So many characters of plain words."""
    sentence = "Moved the token check into the middleware and kept the old route for a week. "
    return (sentence * (length // len(sentence) + 1))[: length - 1] + "."


_LETTERS: tuple[Callable[[str], Draft], ...] = (
    lambda more: compose.draft(
        "BEAD_ACCEPTED", _BEAD, title=more, started_at="2026-01-31T10:00:00Z"
    ),
    lambda more: compose.draft(
        "PROGRESS", _BEAD, step="Step 4 - auth", status=more, context_usage=45, files_touched=_FILES
    ),
    lambda more: compose.draft(
        "HELP_REQUEST",
        _BEAD,
        issue_type="SPEC_UNCLEAR",
        problem=f"The session outlives its token.\n\n{more}",
        what_tried="- read the spec\n- searched the old route\n- asked in the thread",
        question="Which of the two wins?",
        files_touched=_FILES,
    ),
    lambda more: compose.draft("HELP_RESPONSE", _BEAD, guidance=f"The token wins.\n\n{more}"),
    lambda more: compose.draft(
        "OFFERING_READY", _BEAD, commit_sha="abc123def", files=_FILES, **_CHECKS, summary=more
    ),
    lambda more: compose.draft(
        "DONE", _BEAD, commit_sha="abc123def", files=_FILES, **_CHECKS, summary=more
    ),
    lambda more: compose.draft(
        "FAILED",
        _BEAD,
        failure_type="TESTS_FAIL",
        reason="two integration tests fail",
        internal_attempts=3,
        partial_commit_sha="abc123def",
        files=_FILES,
        recommendation=more,
    ),
    lambda more: compose.draft(
        "CHECKPOINT",
        _BEAD,
        checkpoint_reason="CONTEXT_HIGH",
        partial_commit_sha="abc123def",
        progress="steps 1 to 3 are complete",
        context_usage=85,
        next_steps=f"1. finish the middleware\n2. run the tests\n\n{more}",
    ),
    lambda more: compose.draft(
        "SPAWN_REQUEST",
        _BEAD,
        orchestrator=f"crank-{more}",
        resume=True,
        partial_commit_sha="abc123def",
    ),
    lambda more: compose.draft("SPAWN_ACK", _BEAD, status="spawned", session=more),
)
