"""`task claim`, `heartbeat` and `release`: the lease of an agent, and its loss."""

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console
from tests.surfaces.cli.tampering import change

LATER = "2026-02-09T12:10:00Z"


@pytest.fixture
def ready(dragoman: Console) -> Console:
    """Give a directory with one ready task, T-1."""
    dragoman.make("Do it", "--id", "T-1", "--ready", "--body", "a\nb", "--now", NOON)
    return dragoman


@proves("CLI-TASK", "ATTEMPT-NUMBERED", "LEASE-FENCE")
def test_claim_returns_task_attempt_fence_and_expiry(ready: Console) -> None:
    claimed = ready.ask("task", "claim", "--agent", "ada", "--session", "s-1", "--now", NOON)

    assert claimed == {
        "ok": True,
        "id": "T-1",
        "task": "T-1",
        "aofId": "TASK-2026-02-09-001",
        "title": "Do it",
        "status": "in-progress",
        "agent": "ada",
        "session": "s-1",
        "attempt": 1,
        "fence": 1,
        "expiresAt": "2026-02-09T12:05:00.000Z",
        "priority": "normal",
        "body": "a\nb",
        "briefing": None,
    }
    lease = ready.ask("task", "show", "T-1", "--now", NOON)["lease"]
    assert lease == {
        "agent": "ada",
        "session": "s-1",
        "fence": 1,
        "ttlMs": 300_000,
        "expiresAt": "2026-02-09T12:05:00.000Z",
        "heartbeats": 1,
        "valid": True,
    }


@proves("BRIEFING")
def test_claim_tells_what_the_last_attempt_left(ready: Console) -> None:
    ready("task", "claim", "T-1", "--as", "ada", "--now", NOON)
    ready(
        "call", "task.ask", '{"task": "T-1", "text": "red or blue?"}', "--as", "ada", "--now", NOON
    )
    ready("call", "task.answer", '{"task": "T-1", "text": "blue"}', "--now", NOON)
    ready("task", "release", "T-1", "--as", "ada", "--reason", "no brush", "--now", NOON)
    claimed = ready.ask("task", "claim", "T-1", "--agent", "bob", "--now", NOON)

    briefing = claimed["briefing"]
    assert [(one["text"], one["answer"]) for one in briefing["answers"]] == [
        ("red or blue?", "blue")
    ]
    assert (briefing["lastAttempt"]["agent"], briefing["lastAttempt"]["reason"]) == (
        "ada",
        "no brush",
    )
    ready("task", "release", "T-1", "--as", "bob", "--now", NOON)
    shown = ready("task", "claim", "T-1", "--as", "bob", "--now", NOON).out
    assert "  Answered questions\n  | Do not ask them again.\n" in shown
    assert "  | > blue\n" in shown


@proves("CLI-TASK")
def test_claim_prints_task_and_expiry(ready: Console) -> None:
    result = ready("task", "claim", "T-1", "--as", "ada", "--now", NOON)

    assert result.out.splitlines() == [
        "T-1  Do it",
        "  ada has it until 2026-02-09T12:05:00.000Z: attempt 1, fence 1",
        "  | a",
        "  | b",
    ]


@proves("CLI-TASK")
@pytest.mark.parametrize(
    ("ttl", "expires"),
    [
        ("90", "12:01:30.000"),
        ("90s", "12:01:30.000"),
        ("10m", "12:10:00.000"),
        ("1500ms", "12:00:01.500"),
        ("2h", "14:00:00.000"),
    ],
)
def test_ttl_option_sets_the_lease(ready: Console, ttl: str, expires: str) -> None:
    claimed = ready.ask("task", "claim", "--agent", "ada", "--ttl", ttl, "--now", NOON)

    assert claimed["expiresAt"] == f"2026-02-09T{expires}Z"


@proves("CLI-EXIT", "LIMIT-TEXT")
def test_too_short_or_too_long_lease_is_refused(ready: Console) -> None:
    for ttl in ("1ms", "999d"):
        refused = ready.ask("task", "claim", "--agent", "ada", "--ttl", ttl, code=1)
        assert refused["code"] == "invalid_field"


@proves("CLI-TASK", "CLI-EXIT", "TASK-READY")
def test_impossible_claim_is_refused_with_its_code(ready: Console) -> None:
    ready.make("Later", "--id", "T-2", "--ready", "--blocked-by", "T-1")
    ready.make("Hers", "--id", "T-3", "--ready", "--assignee", "eve")
    ready.make("Not yet", "--id", "T-4")

    def refused(*args: str) -> str:
        return ready.ask("task", "claim", *args, code=1)["code"]

    assert refused("T-2", "--agent", "ben") == "blocked_by_dependency"
    assert refused("T-3", "--agent", "ben") == "reserved_for_other"
    assert refused("T-4", "--agent", "ben") == "not_ready"
    assert refused("T-9", "--agent", "ben") == "task_not_found"
    ready.ask("task", "claim", "T-1", "--agent", "ada")
    assert refused("T-1", "--agent", "ben") == "already_claimed"
    assert refused("--agent", "ben") == "nothing_ready"


@proves("CLI-TASK", "LEASE-HEARTBEAT", "LEASE-OFF-LEDGER")
def test_heartbeat_renews_the_lease_without_an_entry(ready: Console) -> None:
    ready.ask("task", "claim", "--agent", "ada", "--now", NOON)
    before = len(ready("events", "--json").objects)

    beat = ready.ask(
        "task", "heartbeat", "T-1", "--agent", "ada", "--fence", "1",
        "--now", "2026-02-09T12:04:00Z",
    )  # fmt: skip

    assert beat == {
        "ok": True,
        "id": "T-1",
        "task": "T-1",
        "status": "in-progress",
        "agent": "ada",
        "attempt": 1,
        "fence": 1,
        "expiresAt": "2026-02-09T12:09:00.000Z",
    }
    assert len(ready("events", "--json").objects) == before
    result = ready("task", "heartbeat", "T-1", "--as", "ada", "--now", "2026-02-09T12:05:00Z")
    assert result.out == "ada has T-1 until 2026-02-09T12:10:00.000Z\n"


@proves("CLI-TASK", "LEASE-RELEASE")
def test_release_returns_the_task_without_a_failure(ready: Console) -> None:
    ready.ask("task", "claim", "--agent", "ada")

    released = ready.ask("task", "release", "T-1", "--agent", "ada", "--reason", "lunch")

    assert (released["status"], released["failures"], released["lease"]) == ("ready", 0, None)
    last = ready("events", "--after", "-1", "--json").objects[0]
    assert last["body"]["reason"] == "lunch"
    ready.ask("task", "claim", "--agent", "ben")
    assert ready("task", "release", "T-1", "--agent", "ben").out == "T-1 is ready\n"


@proves("LEASE-LOST", "LEASE-FENCE", "LEASE-RECOVERY", "CLI-TICK")
def test_expired_holder_loses_every_write(ready: Console) -> None:
    ready.ask("task", "claim", "--agent", "ada", "--now", NOON)
    ready.ask("tick", "--now", LATER)
    ready.ask("task", "claim", "--agent", "ben", "--now", "2026-02-09T12:10:05Z")

    for args in (
        ("task", "heartbeat", "T-1", "--fence", "1"),
        ("task", "heartbeat", "T-1"),
        ("task", "release", "T-1", "--fence", "1"),
        ("task", "move", "T-1", "review", "--fence", "1"),
        ("task", "move", "T-1", "blocked"),
        ("task", "log", "T-1", "still here"),
    ):
        refused = ready.ask(*args, "--as", "ada", "--now", "2026-02-09T12:10:06Z", code=1)
        assert refused["code"] == "lease_lost", args
    shown = ready.ask("task", "show", "T-1", "--now", "2026-02-09T12:10:06Z")
    assert (shown["assignee"], shown["attempt"], shown["fence"]) == ("ben", 2, 2)
    assert shown["lease"]["valid"] is True


@proves("CLI-TASK", "TASK-REVIEW")
def test_task_goes_from_claim_to_done(ready: Console) -> None:
    ready.ask("task", "claim", "--agent", "ada")
    assert ready.ask("task", "move", "T-1", "review", "--as", "ada")["status"] == "review"
    own = ready.ask("task", "move", "T-1", "done", "--as", "ada", code=1)
    assert own["code"] == "not_authorized"
    assert ready.ask("task", "move", "T-1", "done", "--reason", "good")["status"] == "done"
    assert ready("verify").code == 0


@proves("TIME-IN-CALENDAR", "CLI-NOW")
def test_lease_ends_with_the_calendar(ready: Console) -> None:
    late = ("--now", "9999-12-31T23:59:00Z")
    claimed = ready.ask("task", "claim", "T-1", "--agent", "ada", *late)
    assert "9999-12-31T23:59:59.999Z" in str(claimed)
    for args in (("task", "show", "T-1"), ("verify",), ("tick",), ("events",)):
        assert ready(*args).code == 0


@proves("TIME-IN-CALENDAR")
def test_stored_lease_beyond_the_calendar_can_be_shown_and_released(ready: Console) -> None:
    ready.ask("task", "claim", "T-1", "--agent", "ada")
    change(ready.data / "dragoman.db", "UPDATE leases SET expires_at = 1000000000000000")

    assert ready.ask("task", "show", "T-1")["lease"]["expiresAt"] == "9999-12-31T23:59:59.999Z"
    assert ready.ask("task", "log", "T-1", "still here", "--as", "ada")["ok"]
    assert ready.ask("task", "release", "T-1", "--agent", "ada")["status"] == "ready"


@proves("CLI-TASK", "LEASE-FENCE", "LEASE-LOST")
def test_old_fence_does_not_renew_the_lease_of_the_same_agent(
    ready: Console,
) -> None:
    ready.ask("task", "claim", "T-1", "--agent", "ada", "--now", NOON)
    ready.ask("tick", "--now", LATER)
    again = "2026-02-09T13:00:00Z"
    ready.ask("task", "claim", "T-1", "--agent", "ada", "--now", again)
    log = ("task", "log", "T-1", "still here", "--as", "ada", "--now", "2026-02-09T13:04:00Z")

    assert ready.ask(*log, "--fence", "1", code=1)["code"] == "lease_lost"
    before = ready.ask("task", "show", "T-1", "--now", again)["lease"]["expiresAt"]
    ready.ask(*log, "--fence", "2")
    assert ready.ask("task", "show", "T-1", "--now", again)["lease"]["expiresAt"] > before
    assert ready("task", "log", "T-1", "--fence", "2").code == 2
