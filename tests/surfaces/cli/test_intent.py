"""`delegate`, `why`, `intent` and `agent rank`: text and JSON output."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.timestamps import parse_rfc3339
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CCOS-CLI")


@pytest.fixture
def console(dragoman: Console) -> Console:
    """Give a directory with two agents and an intent assigned to ada."""
    add = ("agent", "add", "--no-token", "--now", NOON)
    dragoman.ask(*add, "ada", "--skill", "translate", "--skill", "French", "--trust", "T2")
    dragoman.ask(*add, "bob", "--skill", "translate", "--cost", "0.5", "--capacity", "2")
    dragoman.ask(*add, "eva")
    dragoman.ask(
        *("delegate", "Translate the manual into French", "--id", "i-1", "--within", "10m"),
        *("--param", "pages=3", "--param", "tone=formal", "--plan", "p-1", "--now", NOON),
    )
    return dragoman


def report_result(console: Console, **fields: Any) -> Any:
    """Report a result of ada."""
    result = {"intent_id": "i-1", "agent_id": "ada"} | fields
    message = json.dumps(result)
    return console("call", "ccos.result", message, "--as", "ada", "--now", "2026-02-09T12:01:00Z")


def test_delegate_names_agent_and_deadline(console: Console) -> None:
    result = console("delegate", "Translate a letter", "--id", "i-2", "--now", NOON)
    assert result.out.splitlines() == [
        "i-2 is TaskDispatched",
        "i-2.1 is for ada, due by 2026-02-09T13:00:00.000Z",
    ]
    shown = console.ask("intent", "show", "i-1", "--now", NOON)
    assert shown["request"]["params"]["pages"] == 3
    assert shown["request"]["params"]["tone"] == "formal"
    assert shown["request"]["deadline"] == "2026-02-09T12:10:00.000Z"


@proves("CCOS-PASSED-ON")
def test_extra_fields_of_a_result_are_shown_as_passed_on(console: Console) -> None:
    report_result(console, success=True, output="fini", left_out="much", synthetic="cancelled")
    shown = console("intent", "show", "i-1", "--now", NOON)
    assert shown.code == 0
    assert "ada succeeded" in shown.out
    assert "extra fields: " in shown.out
    assert "was not kept" not in shown.out
    explained = console("why", "i-1", "--now", NOON)
    assert "ada: success after 1m; passed on: left_out, synthetic" in explained.out


def test_delegate_names_reasons_of_a_rejection(console: Console) -> None:
    result = console("delegate", "Sing", "--id", "i-3", "--deadline", "2026-02-09T13:00:00Z")
    assert result.code == 1
    assert "has passed" in result.err
    result = console("delegate", "Sing", "--id", "i-3", "--now", NOON)
    assert result.code == 1
    first, *reasons = result.out.splitlines()
    assert first == "i-3 is DelegationRejected"
    assert reasons[0].startswith("  ada: capability: the goal names none of its skills; bob: ")
    repeated = console("delegate", "Sing", "--id", "i-3", "--now", NOON, "--json")
    assert (repeated.json["ok"], repeated.json["code"]) == (False, "not_dispatched")
    assert repeated.json["state"] == "DelegationRejected"


def test_within_option_sets_the_deadline(console: Console) -> None:
    reply = console.ask("delegate", "Translate this", "--id", "i-4", "--within", "1s")
    created = console.ask("intent", "show", "i-4")["created_at"]
    due = reply["request"]["deadline"]
    assert parse_rfc3339(due) - parse_rfc3339(created) == 1_000


PLANNER = {"agent_id": "planner", "skills": ["routes"], "reach": "https://p.example"}


@proves("CCOS-REACH")
def test_unreachable_agent_is_reported(console: Console) -> None:
    console.ask("call", "ccos.register", json.dumps(PLANNER))
    note = "note: nothing reaches planner: only its address is known (https://p.example)"
    assert "nothing reaches planner" in console("agent", "rank", "plan routes").out
    assert note in console("delegate", "plan routes", "--id", "r-1").out
    assert "is at https://p.example" in console("agent", "show", "planner").out
    console("agent", "token", "planner")
    assert "nothing reaches" not in console("agent", "rank", "plan routes").out


@proves("CCOS-REACH")
def test_agent_called_by_settings_is_reachable(console: Console) -> None:
    (console.data / "dragoman.toml").write_text(
        '[agents.planner]\nurl = "https://p.example/requests"\nspeaks = ["ccos"]\n',
        encoding="utf-8",
    )
    console.ask("call", "ccos.register", json.dumps(PLANNER))
    assert "nothing reaches" not in console("agent", "rank", "plan routes").out


@pytest.mark.parametrize(
    "args",
    [
        ("delegate", "x", "--param", "pages"),
        ("agent", "add", "eva", "--cost", "1"),
        ("agent", "add", "eva", "--skill", "x", "--cost", "cheap"),
        ("agent", "add", "eva", "--skill", "x", "--cost", "-1"),
        ("verify", "--key", "x.pub"),
    ],
)
def test_invalid_arguments_are_usage_errors(console: Console, args: tuple[str, ...]) -> None:
    assert console(*args).code == 2


def test_rank_shows_every_score_and_the_reason_of_the_choice(console: Console) -> None:
    result = console("agent", "rank", "translate into French", "--now", NOON)
    assert result.out == console("agent", "rank", "translate into French", "--now", NOON).out
    reason, head, first, second = result.out.splitlines()
    assert head.split() == [
        *("AGENT", "TRUST", "SCORE", "NEEDS", "SKILL", "CONSTRAINT", "SUCCESS", "NEWCOMER"),
        *("TURN", "COST", "RESULTS", "VERDICT"),
    ]
    assert (first.split()[0], second.split()[0]) == ("ada", "bob")
    assert reason == "ada would get it"
    limited = console(
        "agent", "rank", "translate", "--limit", "1", "--skill", "French", "--now", NOON
    )
    assert "There are more: add --after 1" in limited.out
    unmatched = console("agent", "rank", "sing", "--constraint", "loud", "--now", NOON)
    assert unmatched.out.startswith("nobody: ")
    reply = console.ask("agent", "rank", "translate", "--now", NOON)
    assert reply["chosen"] == "ada"


def test_why_prints_the_actions_as_a_tree(console: Console) -> None:
    console("call", "ccos.update", '{"intent_id":"i-1","agent_id":"ada","progress":0.5}',
           "--as", "ada", "--now", NOON)  # fmt: skip
    report_result(console, success=False, error="no dictionary")
    console("call", "ccos.result", '{"intent_id":"i-1","agent_id":"ada","success":true}',
           "--as", "ada", "--now", NOON)  # fmt: skip
    lines = console("why", "i-1", "--now", NOON).out.splitlines()
    steps = [line.rpartition("  ")[0] for line in lines[1:]]
    assert lines[0] == "i-1 is TaskDispatched"
    assert steps[0].endswith(' requests, as a part of plan p-1: "Translate the manual into French"')
    assert steps[1].startswith("└─ DelegationProposed  ada with ")
    assert steps[1].endswith(", of 2")
    assert steps[2].startswith("   └─ DelegationApproved  ada passes forbidden goal, ")
    assert steps[3].startswith("      └─ TaskDispatched  i-1.1 to ada, due by ")
    assert steps[4] == "         ├─ TaskUpdated  ada: 50 %"
    assert steps[5] == "         ├─ TaskCompleted  ada: failure after 1m: no dictionary"
    assert steps[6].startswith("         │  ├─ FeedbackApplied  ada has 0 successes and 1 failure")
    assert steps[7].startswith("         │  └─ DelegationProposed  bob with ")
    assert steps[-1].startswith("         └─ Anomaly  agent:ada: ")
    on_terminal = console.on_terminal("why", "i-1", "--now", NOON).out
    assert "DelegationProposed" in on_terminal


@proves("CCOS-FOLLOW-UP")
def test_follow_up_shows_its_intent(console: Console) -> None:
    report_result(console, success=False, error="no dictionary")
    options = ("--follows", "i-1", "--plan", "p-1")
    console("delegate", "Translate it again", "--id", "i-2", *options, "--now", NOON)
    explained = console("why", "i-2", "--now", NOON).out.splitlines()[1]
    assert 'requests, as a part of plan p-1, to follow up i-1: "Translate it again"' in explained
    shown = console("intent", "show", "i-2", "--now", NOON).out.splitlines()[1]
    assert shown.endswith(", as a part of plan p-1, to follow up i-1")


@proves("REDACT-REQUESTS")
def test_masked_secret_of_delegate_and_cancel_is_a_warning(console: Console) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    goal = ("delegate", f"Translate {secret}", "--id", "i-2", "--now", NOON)
    masked = "warning: a secret was masked: {} (github_token)\n"
    assert console(*goal).err == masked.format("goal")
    cancelled = console("intent", "cancel", "i-2", "--reason", secret, "--now", NOON)
    assert cancelled.err == masked.format("reason")
    assert secret not in console("why", "i-2", "--now", NOON).out


def test_intent_is_shown_listed_and_cancelled(console: Console) -> None:
    report_result(console, success=True, output={"pages": 3})
    shown = console("intent", "show", "i-1", "--now", NOON).out
    assert "i-1 is Satisfied: Translate the manual into French" in shown
    assert 'output: {"pages": 3}' in shown
    console("delegate", "Translate it again", "--id", "i-2", "--follows", "i-1", "--now", NOON)
    listed = console("intent", "list", "--now", NOON).out.splitlines()
    assert [line.split()[0] for line in listed] == ["INTENT", "i-1", "i-2"]
    open_intents = console.ask("intent", "list", "--open", "--now", NOON)["intents"]
    assert [row["intent_id"] for row in open_intents] == ["i-2"]
    page = console("intent", "list", "--limit", "1", "--now", NOON).out
    assert "There are more: add --after" in page
    result = console("intent", "cancel", "i-2", "--reason", "enough", "--now", NOON)
    assert result.out == "i-2 is cancelled\n"
    cancelled = console("intent", "show", "i-2", "--now", NOON).out
    person = console.ask("intent", "show", "i-2", "--now", NOON)["reasons"][0].split()[2]
    assert cancelled.startswith("i-2 is cancelled: Translate it again\n")
    assert "i-2.1 was taken back from " in cancelled
    assert f"because: cancelled by {person} enough" in cancelled
    row = console("intent", "list", "--now", NOON).out.splitlines()[2]
    assert row.split()[:2] == ["i-2", "cancelled"]
    explained = console("why", "i-2", "--now", NOON).out
    assert explained.startswith("i-2 is cancelled\n")
    assert "NeedsFollowUp  cancelled by " in explained
    assert "was taken back from" in explained
    again = console("delegate", "Translate it again", "--id", "i-2", "--now", NOON)
    assert (again.code, again.out.splitlines()[0]) == (1, "i-2 is cancelled")
    events = console("events", "--type", "intent", "--now", NOON).out
    assert "taken back from" in events
    assert "needs a follow-up" not in events
    assert console("intent", "list", "--plan", "p-9").out == "none\n"
    assert console("intent", "show", "i-9", "--now", NOON).code == 1


def test_list_names_the_current_agent_of_an_open_intent(console: Console) -> None:
    def agents() -> str:
        return console("intent", "list", "--now", NOON).out.splitlines()[1].split()[2]

    report_result(console, success=False, error="ill")
    assert agents() == "bob"
    console("intent", "cancel", "i-1", "--now", NOON)
    assert agents() == "ada,"


def test_refused_cancel_names_the_permitted_roles(console: Console) -> None:
    result = console("intent", "cancel", "i-1", "--as", "ada", "--now", NOON)
    assert "a person, an orchestrator or a coordinator" in result.err


@proves("CCOS-TAKEN-BACK")
def test_blocked_task_is_no_failure_of_its_agent(console: Console) -> None:
    console("task", "move", "i-1", "blocked", "--reason", "wait", "--now", NOON)
    expected = "i-1.1 was taken back from ada: the task is blocked: wait"
    assert expected in console("intent", "show", "i-1", "--now", NOON).out.splitlines()
    assert f"TaskCompleted  {expected}  " in console("why", "i-1", "--now", NOON).out
    events = console("events", "--type", "intent", "--now", NOON).out
    assert "i-1.1 taken back from ada: the task is blocked: wait" in events


@proves("CCOS-TAKEN-BACK")
def test_deadletter_by_a_person_is_no_failure_of_the_agent(console: Console) -> None:
    console("task", "move", "i-1", "deadletter", "--now", NOON)
    shown = console("intent", "show", "i-1", "--now", NOON).out
    assert "i-1.1 was taken back from ada: the task is deadletter" in shown.splitlines()


@proves("CCOS-TAKEN-BACK")
def test_partial_output_is_described_as_such(console: Console) -> None:
    piece = {"intent_id": "i-1", "agent_id": "ada", "partial": {"page": 1}}
    for update in (piece, piece | {"sequence": 2}):
        console("call", "ccos.update", json.dumps(update), "--as", "ada", "--now", NOON)
    explained = console("why", "i-1", "--now", NOON).out
    assert "TaskUpdated  ada: piece of the output  " in explained
    assert "TaskUpdated  ada: piece 2 of the output  " in explained
    assert "ada: a piece of the output" in console("events", "--type", "intent", "--now", NOON).out


@proves("CCOS-TAKEN-BACK")
def test_reassignment_and_new_request_differ(console: Console) -> None:
    console("task", "claim", "i-1", "--agent", "ada", "--now", NOON)
    console("task", "move", "i-1", "review", "--as", "ada", "--now", NOON)
    console("task", "move", "i-1", "ready", "--now", NOON)
    explained = console("why", "i-1", "--now", NOON).out
    assert "RequestSuperseded  i-1.1 is void: ada is asked now  " in explained
    assert "i-1.1 of ada is void: ada is asked now" in console("events", "--now", NOON).out
    [card] = (console.data / "tasks/ready").glob("*.md")
    card.write_text(card.read_text().replace("assignee: ada", "assignee: bob"))
    console("tick", "--now", NOON)
    explained = console("why", "i-1", "--now", NOON).out
    assert "RequestSuperseded  i-1.2 is void: bob is asked now  " in explained
    assert (
        "DelegationApproved  bob passes forbidden goal, capability, trust, cost, data loc"
        in explained
    )


def test_assignment_by_handoff_has_no_score(console: Console) -> None:
    console("task", "claim", "i-1", "--agent", "ada", "--now", NOON)
    args = ("--summary", "s", "--next-step", "n", "--criterion", "c")
    to_carol = ("--to", "carol", "--task", "i-1", "--id", "h1", *args)
    console("handoff", "initiate", "--as", "ada", *to_carol, "--now", NOON)
    for action in ("accept", "activate"):
        console("handoff", action, "h1", "--as", "carol", "--now", NOON)
    assert "DelegationProposed  carol, not by a score" in console("why", "i-1", "--now", NOON).out
    assert "carol proposed, not by a score" in console("events", "--now", NOON).out


def test_open_intent_shows_its_request_and_anomalies(console: Console) -> None:
    report_result(console, success=True, output=1, error="both")
    shown = console("intent", "show", "i-1", "--now", NOON).out
    assert "i-1.1 is open with ada, due by 2026-02-09T12:10:00.000Z" in shown
    assert "anomalies: 1" in shown


def test_large_result_is_sent_from_a_file(console: Console, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    message = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": "x" * 1_000_000}
    file.write_text(json.dumps(message))
    assert console("lint", "--dialect", "ccos", "--strict", str(file)).code == 0
    reply = console.ask("send", str(file), "--now", NOON)
    assert reply["reply"]["state"] == "Satisfied"
    assert reply["tasks"][0]["status"] == "done"


def test_capabilities_of_an_agent_are_shown(console: Console) -> None:
    report_result(console, success=True, output=1)
    shown = console("agent", "show", "ada", "--now", NOON).out
    assert "can translate, French; trust T2" in shown
    assert "1 of 1 requests went well, 0 open" in shown
    console.ask("delegate", "translate more French", "--id", "i-9", "--now", NOON)
    shown = console("agent", "show", "ada", "--now", NOON).out
    assert "1 of 1 requests went well, 1 open" in shown
    reply = console.ask("agent", "show", "bob", "--now", NOON)["offer"]
    assert (reply["skills"], reply["cost"], reply["capacity"]) == (["translate"], 0.5, 2)
    assert "offer" not in console.ask("agent", "show", "eva", "--now", NOON)


def test_add_keeps_capabilities_that_are_not_passed(console: Console) -> None:
    reply = console.ask("agent", "add", "ada", "--cost", "2", "--no-token", "--now", NOON)
    assert reply["skills"] == ["translate", "French"]
    result = console("agent", "add", "ada", "--skill", "sing", "--no-token", "--now", NOON)
    assert "it can sing" in result.out
    row = json.loads(console("call", "ccos.agents", '{"skill":"sing"}', "--now", NOON).out)
    assert (row["agents"][0]["trust"], row["agents"][0]["cost"]) == ("T2", 2.0)
