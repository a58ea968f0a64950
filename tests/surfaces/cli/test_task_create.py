"""`task create`, `move` and `link`: results and refusals."""

import io
import sys
from pathlib import Path

import pytest

from dragoman.core.limits import MAX_BODY, MAX_TITLE
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

KEYS = {
    "id", "aofId", "title", "status", "priority", "assignee", "reservedFor", "reviewRequired",
    "body", "parent", "children", "blockedBy", "waitsFor", "waitReason", "obstacle", "blocks",
    "discoveredFrom", "discovered", "aliases", "origin", "attempt", "fence", "maxAttempts",
    "failures", "notes", "notBefore", "createdAt", "updatedAt", "lastTransitionAt", "lease",
    "report", "questions", "answers", "feedback", "deadline", "overdue",
    "checks", "proven", "evidence",
    "delegation", "delegationDepth", "handoff", "handoffChain", "warnings", "checkpoint",
}  # fmt: skip


@proves("CLI-TASK", "CLI-NOW", "NAME-AOF-ID")
def test_create_prints_the_id_or_the_whole_task(dragoman: Console) -> None:
    assert dragoman("task", "create", "One", "--now", NOON).out == "TASK-2026-02-09-001\n"
    made = dragoman.ask("task", "create", "Two", "--now", NOON)

    assert made.keys() == KEYS | {"ok", "repeated"}
    assert made["id"] == made["aofId"] == "TASK-2026-02-09-002"
    assert (made["title"], made["status"], made["priority"]) == ("Two", "backlog", "normal")
    assert made["createdAt"] == "2026-02-09T12:00:00.000Z"
    assert made["reviewRequired"] is True
    assert made["lease"] is made["report"] is made["assignee"] is None


@proves("CLI-TASK")
def test_create_takes_every_field_of_a_task(dragoman: Console) -> None:
    whole = dragoman.make("Whole")
    first = dragoman.make("First")

    made = dragoman.ask(
        "task", "create", "Part", "--id", "ol-1", "--ready", "--assignee", "ada",
        "--parent", whole, "--no-review", "--priority", "high", "--body", "text",
        "--blocked-by", first, "--blocked-by", whole, "--discovered-from", first,
        "--alias", "bead:ol-1.1", "--alias", "intent:x",
    )  # fmt: skip

    assert made["id"] == "ol-1"
    assert made["aofId"].startswith("TASK-")
    assert (made["status"], made["reservedFor"], made["assignee"]) == ("ready", "ada", "ada")
    assert (made["parent"], made["discoveredFrom"]) == (whole, first)
    assert made["blockedBy"] == made["waitsFor"] == [first, whole]
    assert (made["reviewRequired"], made["priority"], made["body"]) == (False, "high", "text")
    assert made["aliases"] == ["bead:ol-1.1", "intent:x"]
    assert dragoman.ask("task", "show", whole)["children"] == ["ol-1"]


@proves("CLI-TASK", "DELEGATION-ATOMIC")
def test_create_with_deadline_delegates_the_task_to_its_assignee(dragoman: Console) -> None:
    whole = dragoman.make("Whole", "--ready")
    dragoman.ask("task", "claim", whole, "--agent", "ada")

    made = dragoman.ask(
        "task", "create", "Part", "--ready", "--parent", whole, "--assignee", "bob",
        "--due-by", "2026-02-10T12:00:00Z", "--criterion", "it is green",
        "--expected-output", "outputs/part.md", "--context-ref", "plan.md",
        "--constraint", "no network", "--as", "ada",
    )  # fmt: skip

    asked = made["delegation"]
    assert (asked["from"], asked["to"], asked["state"]) == ("ada", "bob", "requested")
    assert asked["dueBy"] == "2026-02-10T12:00:00.000Z"
    assert (asked["acceptanceCriteria"], asked["constraints"]) == (["it is green"], ["no network"])
    created, requested = dragoman("events", "--task", made["id"], "--json").objects
    assert created["cause"] == requested["cause"]


@proves("CLI-TASK", "CONFIG-ONCE")
def test_settings_define_defaults_of_task_and_lease(dragoman: Console) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text(
        "[tasks]\nreview_required = false\nmax_attempts = 2\n[leases]\nttl_ms = 60000\n"
    )

    made = dragoman.ask("task", "create", "x", "--ready")
    assert (made["reviewRequired"], made["maxAttempts"]) == (False, 2)
    claimed = dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    assert claimed["expiresAt"] == "2026-02-09T12:01:00.000Z"


@proves("CLI-TASK", "REVIEW-POLICY")
@pytest.mark.parametrize(
    ("settings", "code"),
    [("", 1), ("agents_skip_review = true\n", 0), ("review_required = false\n", 0)],
)
def test_agent_creates_a_task_without_review_only_if_the_settings_allow_it(
    dragoman: Console, settings: str, code: int
) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text(f"[tasks]\n{settings}")

    made = dragoman.ask("task", "create", "x", "--no-review", "--as", "ada", code=code)

    if code:
        assert (made["code"], "agents_skip_review" in made["detail"]) == (
            "not_authorized",
            True,
        )
    else:
        assert made["reviewRequired"] is False


@proves("REVIEW-POLICY")
@pytest.mark.parametrize("is_reviewed", [False, True])
def test_setting_of_ccos_has_intents_reviewed(dragoman: Console, *, is_reviewed: bool) -> None:
    dragoman("init")
    (dragoman.data / "dragoman.toml").write_text(f"[ccos]\nreview = {str(is_reviewed).lower()}\n")
    dragoman.ask("agent", "add", "ada", "--skill", "translate")

    dragoman.ask("delegate", "translate the manual", "--id", "i-1")

    assert dragoman.ask("task", "show", "i-1")["reviewRequired"] is is_reviewed


@proves("CLI-TASK")
def test_body_comes_from_a_file_or_from_standard_input(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "body.md"
    file.write_bytes("zwei\r\nZeilen …\n".encode())

    made = dragoman.ask("task", "create", "x", "--body-file", str(file))
    assert made["body"] == "zwei\r\nZeilen …\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    assert dragoman.ask("task", "create", "x", "--body-file", "-")["body"] == "from a pipe"


@proves("CLI-EXIT")
def test_body_that_is_not_text_is_a_usage_error(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "body.bin"
    file.write_bytes(b"\xff\xfe")

    result = dragoman("task", "create", "x", "--body-file", str(file))
    assert result.code == 2
    assert "is not UTF-8 text" in result.err


@proves("LIMIT-TEXT", "CLI-EXIT")
def test_too_long_text_is_refused_with_the_limit(dragoman: Console, tmp_path: Path) -> None:
    file = tmp_path / "body.md"
    file.write_text("x" * (MAX_BODY + 500))

    title = dragoman.ask("task", "create", "x" * (MAX_TITLE + 1), code=1)
    body = dragoman.ask("task", "create", "x", "--body-file", str(file), code=1)
    key = dragoman.ask("task", "create", "x", "--key", "k" * 5_000, code=1)

    assert title["code"] == body["code"] == "invalid_field"
    assert f"at most {MAX_TITLE} are allowed" in title["detail"]
    assert f"at most {MAX_BODY} are allowed" in body["detail"]
    assert key["ok"] is False
    assert dragoman.ask("task", "list")["tasks"] == []


@proves("LIMIT-TEXT")
@pytest.mark.parametrize("title", ["", "   ", "\n"])
def test_empty_title_is_refused(dragoman: Console, title: str) -> None:
    assert dragoman.ask("task", "create", title, code=1)["code"] == "invalid_field"


@proves("NAME-GRAMMAR", "CLI-EXIT")
@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "a/b",
        "..",
        "-x-",
        "TASK-2026-02-09-\uff10\uff10\uff11",
        "TASK-2026-02-09-001\n",
        "a b",
        "a\x00b",
        "x" * 129,
        "\u202ex",
        "'; drop table streams; --",
    ],
)
def test_id_outside_the_grammar_is_refused_everywhere(dragoman: Console, name: str) -> None:
    dragoman.make("One", "--id", "T-1")

    for args in (
        ("task", "create", "x", f"--id={name}"),
        ("task", "create", "x", f"--parent={name}"),
        ("task", "create", "x", f"--alias=bead:{name}"),
        ("task", "link", "T-1", f"--blocked-by={name}"),
        ("task", "show", "--", name),
        ("task", "move", "--", name, "done"),
        ("task", "claim", "--agent", "ada", "--", name),
    ):
        result = dragoman("--json", *args)
        assert (result.code, result.json["code"]) == (1, "invalid_id"), args
        assert name not in result.out or name.isascii()
    assert dragoman("verify").code == 0


@proves("IDEM-REPEAT", "IDEM-SCOPE", "CLI-TASK")
def test_same_key_creates_no_second_task(dragoman: Console) -> None:
    first = dragoman.ask("task", "create", "x", "--key", "k")
    again = dragoman.ask("task", "create", "x", "--key", "k")

    assert (first["repeated"], again["repeated"]) == (False, True)
    assert first["id"] == again["id"]
    assert dragoman.ask("task", "create", "y", "--key", "k", code=1)["code"] == "key_reused"
    assert len(dragoman.ask("task", "list")["tasks"]) == 1


@proves("CLI-TASK", "TASK-REVIEW", "NAME-ALIAS")
def test_move_works_by_any_name(dragoman: Console) -> None:
    dragoman.make("x", "--id", "T-1", "--alias", "bead:b-1")
    aof = dragoman.ask("task", "show", "T-1")["aofId"]

    assert dragoman("task", "move", "bead:b-1", "ready").out == "T-1 is ready\n"
    assert dragoman.ask("task", "move", aof, "blocked", "--reason", "rain")["status"] == "blocked"
    moved = dragoman("events", "--type", "task.transitioned", "--json").objects[-1]
    assert moved["body"] == {"from": "ready", "to": "blocked", "reason": "rain"}


@proves("TASK-CLAIM-ONLY", "TASK-LIFECYCLE", "CLI-EXIT")
@pytest.mark.parametrize(
    ("status", "code"), [("in-progress", "claim_required"), ("review", "invalid_transition")]
)
def test_invalid_transition_is_refused(dragoman: Console, status: str, code: str) -> None:
    dragoman.make("x", "--id", "T-1", "--ready")

    assert dragoman.ask("task", "move", "T-1", status, code=1)["code"] == code


@proves("CLI-TASK", "TASK-LINKS", "CORE-ALL-OR-NONE")
def test_link_adds_links_and_names_atomically(dragoman: Console) -> None:
    for name in ("T-1", "T-2", "T-3"):
        dragoman.make(name, "--id", name, "--ready")

    refused = dragoman.ask("task", "link", "T-1", "--blocked-by", "T-2", "--parent", "T-9", code=1)
    assert refused["code"] == "parent_not_found"
    assert dragoman.ask("task", "show", "T-1")["blockedBy"] == []
    linked = dragoman.ask(
        "task", "link", "T-1", "--blocked-by", "T-2", "--blocked-by", "T-3", "--parent", "T-2",
        "--discovered-from", "T-3", "--alias", "bead:b-1",
    )  # fmt: skip
    assert linked["waitsFor"] == ["T-2", "T-3"]
    assert (linked["parent"], linked["discoveredFrom"]) == ("T-2", "T-3")
    assert dragoman.ask("task", "show", "b-1")["id"] == "T-1"
    output = dragoman("task", "link", "T-1", "--alias", "bead:b-2").out
    assert output == "T-1 is ready, and waits for T-2, T-3\n"
    cycle = dragoman.ask("task", "link", "T-2", "--blocked-by", "T-1", code=1)
    assert cycle["code"] == "link_cycle"


@proves("ADVICE-LEADS-ON")
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("--blocked-by", "wait for itself"),
        ("--parent", "a part of itself"),
        ("--discovered-from", "discovered from itself"),
    ],
)
def test_link_cycle_is_refused_with_its_kind(dragoman: Console, kind: str, expected: str) -> None:
    for name in ("A", "B"):
        dragoman.make(name, "--id", name)
    dragoman.ask("task", "link", "A", kind, "B")

    assert dragoman.ask("task", "link", "B", kind, "A", code=1)["detail"].endswith(expected)


@proves("ADVICE-LEADS-ON")
def test_link_that_blocks_a_ready_task_reports_it(dragoman: Console) -> None:
    for name in ("A", "B"):
        dragoman.make(name, "--id", name, "--ready")

    assert dragoman("task", "link", "B", "--blocked-by", "A").out == "B is ready, and waits for A\n"
