"""delegate, why, intent and agent rank|discover: what people see, and what programs are told."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.moments import parse_rfc3339
from tests.notify.receiver import Receiver, receiving, status, text
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console

pytestmark = proves("CCOS-CLI")

CARD = {"name": "Planner", "url": "https://p.example", "skills": [{"tags": ["routes"]}]}


@pytest.fixture
def office(dragoman: Console) -> Console:
    """Give a directory with two agents, and an intent that ada has been given."""
    add = ("agent", "add", "--no-token", "--now", NOON)
    dragoman.ask(*add, "ada", "--skill", "translate", "--skill", "French", "--trust", "T2")
    dragoman.ask(*add, "bob", "--skill", "translate", "--cost", "0.5", "--capacity", "2")
    dragoman.ask(*add, "eva")
    dragoman.ask(
        *("delegate", "Translate the manual into French", "--id", "i-1", "--within", "10m"),
        *("--param", "pages=3", "--param", "tone=formal", "--plan", "p-1", "--now", NOON),
    )
    return dragoman


def finish(office: Console, **said: Any) -> Any:
    """Let ada hand in a result."""
    result = {"intent_id": "i-1", "agent_id": "ada"} | said
    words = json.dumps(result)
    return office("call", "ccos.result", words, "--as", "ada", "--now", "2026-02-09T12:01:00Z")


def test_delegate_says_who_has_it_and_until_when(office: Console) -> None:
    said = office("delegate", "Translate a letter", "--id", "i-2", "--now", NOON)
    assert said.out.splitlines() == [
        "i-2 is TaskDispatched",
        "i-2.1 is for ada, due by 2026-02-09T13:00:00.000Z",
    ]
    shown = office.ask("intent", "show", "i-1", "--now", NOON)
    assert shown["request"]["params"]["pages"] == 3
    assert shown["request"]["params"]["tone"] == "formal"
    assert shown["request"]["deadline"] == "2026-02-09T12:10:00.000Z"


@proves("CCOS-PASSED-ON")
def test_what_a_result_says_besides_is_shown_as_that(office: Console) -> None:
    finish(office, success=True, output="fini", left_out="much", synthetic="cancelled")
    shown = office("intent", "show", "i-1", "--now", NOON)
    assert shown.code == 0
    assert "ada succeeded" in shown.out
    assert '"passed_on"' in shown.out
    assert "was not kept" not in shown.out
    told = office("why", "i-1", "--now", NOON)
    assert "ada: success after 1m; passed on: left_out, synthetic" in told.out


def test_delegate_says_why_nobody_has_it(office: Console) -> None:
    said = office("delegate", "Sing", "--id", "i-3", "--deadline", "2026-02-09T13:00:00Z")
    assert said.code == 1
    assert "has passed" in said.err
    said = office("delegate", "Sing", "--id", "i-3", "--now", NOON)
    assert said.code == 1
    first, *reasons = said.out.splitlines()
    assert first == "i-3 is DelegationRejected"
    assert reasons[0] == "  ada: capability: the goal names none of its skills"
    told = office("delegate", "Sing", "--id", "i-3", "--now", NOON, "--json")
    assert (told.json["ok"], told.json["code"]) == (False, "not_dispatched")
    assert told.json["state"] == "DelegationRejected"


def test_within_is_as_long_as_it_says(office: Console) -> None:
    told = office.ask("delegate", "Translate this", "--id", "i-4", "--within", "1s")
    made = office.ask("intent", "show", "i-4")["created_at"]
    due = told["request"]["deadline"]
    assert parse_rfc3339(due) - parse_rfc3339(made) == 1_000


@proves("CCOS-REACH")
def test_an_agent_that_nothing_reaches_is_told_as_that(office: Console, tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text(json.dumps(CARD), encoding="utf-8")
    said = office("agent", "discover", str(card))
    note = "note: nothing reaches planner: only its address is known (https://p.example)"
    assert note in said.out
    assert "nothing reaches planner" in office("agent", "rank", "plan routes").out
    assert note in office("delegate", "plan routes", "--id", "r-1").out
    assert "is at https://p.example" in office("agent", "show", "planner").out
    office("agent", "token", "planner")
    assert "nothing reaches" not in office("agent", "rank", "plan routes").out


@proves("CCOS-REACH")
def test_nor_is_one_that_the_settings_call(office: Console, tmp_path: Path) -> None:
    (office.data / "dragoman.toml").write_text(
        '[agents.planner]\nurl = "https://p.example/requests"\nspeaks = ["ccos"]\n',
        encoding="utf-8",
    )
    card = tmp_path / "card.json"
    card.write_text(json.dumps(CARD), encoding="utf-8")
    assert "nothing reaches" not in office("agent", "discover", str(card)).out


@pytest.mark.parametrize(
    "words",
    [
        ("delegate", "x", "--within", "1m", "--deadline", NOON),
        ("delegate", "x", "--param", "pages"),
        ("agent", "add", "eva", "--cost", "1"),
        ("agent", "add", "eva", "--skill", "x", "--cost", "cheap"),
        ("agent", "add", "eva", "--skill", "x", "--cost", "-1"),
        ("agent", "discover", "no-such-file.json"),
        ("verify", "--key", "x.pub"),
        ("verify", "--chain", "no-such-file"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(office: Console, words: tuple[str, ...]) -> None:
    assert office(*words).code == 2


def test_rank_shows_every_part_and_why_one_wins(office: Console) -> None:
    said = office("agents", "rank", "translate into French", "--now", NOON)
    assert said.out == office("agent", "rank", "translate into French", "--now", NOON).out
    head, first, second, why = said.out.splitlines()
    assert head.split() == [
        *("AGENT", "TRUST", "SCORE", "NEEDS", "SKILL", "CONSTRAINT", "SUCCESS", "NEWCOMER"),
        *("TURN", "COST", "RESULTS", "VERDICT"),
    ]
    assert (first.split()[0], second.split()[0]) == ("ada", "bob")
    assert why.startswith("ada is")
    short = office("agent", "rank", "translate", "--limit", "1", "--skill", "French", "--now", NOON)
    assert "and 1 more: add --after 1" in short.out
    none = office("agent", "rank", "sing", "--constraint", "loud", "--now", NOON)
    assert none.out.splitlines()[-1].startswith("nobody: ")
    told = office.ask("agent", "rank", "translate", "--now", NOON)
    assert told["chosen"] == "ada"


def test_why_draws_the_story_as_a_tree(office: Console) -> None:
    office("call", "ccos.update", '{"intent_id":"i-1","agent_id":"ada","progress":0.5}',
           "--as", "ada", "--now", NOON)  # fmt: skip
    finish(office, success=False, error="no dictionary")
    office("call", "ccos.result", '{"intent_id":"i-1","agent_id":"ada","success":true}',
           "--as", "ada", "--now", NOON)  # fmt: skip
    lines = office("why", "i-1", "--now", NOON).out.splitlines()
    told = [line.rpartition("  ")[0] for line in lines[1:]]
    assert lines[0] == "i-1 is TaskDispatched"
    assert told[0].endswith(' wants, as a part of plan p-1: "Translate the manual into French"')
    assert told[1].startswith("└─ DelegationProposed  ada with ")
    assert told[1].endswith("before bob")
    assert told[2] == "   └─ DelegationApproved  ada passes every rule"
    assert told[3].startswith("      └─ TaskDispatched  i-1.1 to ada, due by ")
    assert told[4] == "         ├─ TaskUpdated  ada: 50 %"
    assert told[5] == "         ├─ TaskCompleted  ada: failure after 1m: no dictionary"
    assert told[6].startswith("         │  ├─ FeedbackApplied  ada has 0 successes and 1 failure")
    assert told[7].startswith("         │  └─ DelegationProposed  bob with ")
    assert told[-1].startswith("         └─ Anomaly  agent:ada: ")
    on_terminal = office.on_terminal("why", "i-1", "--now", NOON).out
    assert "DelegationProposed" in on_terminal


@proves("CCOS-FOLLOW-UP")
def test_an_intent_that_follows_another_says_so_and_the_other_too(office: Console) -> None:
    finish(office, success=False, error="no dictionary")
    belongs = ("--follows", "i-1", "--plan", "p-1")
    office("delegate", "Translate it again", "--id", "i-2", *belongs, "--now", NOON)
    story = office("why", "i-2", "--now", NOON).out.splitlines()[1]
    assert 'wants, as a part of plan p-1, to follow up i-1: "Translate it again"' in story
    shown = office("intent", "show", "i-2", "--now", NOON).out.splitlines()[1]
    assert shown.endswith(", as a part of plan p-1, to follow up i-1")
    assert "followed up by i-2\n" in office("intent", "show", "i-1", "--now", NOON).out


@proves("REDACT-REQUESTS")
def test_who_delegates_or_cancels_with_a_secret_is_told_that_it_was_masked(office: Console) -> None:
    secret = f"ghp_{'a1B2' * 9}"
    goal = ("delegate", f"Translate {secret}", "--id", "i-2", "--now", NOON)
    masked = "warning: a secret was masked: {} (github_token)\n"
    assert office(*goal).err == masked.format("goal")
    again = office(*goal, "--deadline", "2026-12-01T00:00:00Z")
    assert (again.err, again.out.count("was asked for before")) == (masked.format("goal"), 1)
    cancelled = office("intent", "cancel", "i-2", "--reason", secret, "--now", NOON)
    assert cancelled.err == masked.format("reason")
    assert secret not in office("why", "i-2", "--now", NOON).out


def test_an_intent_is_shown_listed_and_cancelled(office: Console) -> None:
    finish(office, success=True, output={"pages": 3})
    shown = office("intent", "show", "i-1", "--now", NOON).out
    assert "i-1 is Satisfied: Translate the manual into French" in shown
    assert '{"output": {"pages": 3}}' in shown
    office("delegate", "Translate it again", "--id", "i-2", "--follows", "i-1", "--now", NOON)
    listed = office("intent", "list", "--now", NOON).out.splitlines()
    assert [line.split()[0] for line in listed] == ["INTENT", "i-1", "i-2"]
    opened = office.ask("intent", "list", "--open", "--now", NOON)["intents"]
    assert [row["intent_id"] for row in opened] == ["i-2"]
    page = office("intent", "list", "--limit", "1", "--now", NOON).out
    assert "There are more: add --after" in page
    said = office("intent", "cancel", "i-2", "--reason", "enough", "--now", NOON)
    assert said.out == "i-2 is cancelled\n"
    gone = office("intent", "show", "i-2", "--now", NOON).out
    person = office.ask("intent", "show", "i-2", "--now", NOON)["reasons"][0].split()[2]
    assert gone.startswith("i-2 is cancelled: Translate it again\n")
    assert "i-2.1 was taken back from " in gone
    assert f"because: cancelled by {person} enough" in gone
    row = office("intent", "list", "--now", NOON).out.splitlines()[2]
    assert row.split()[:2] == ["i-2", "cancelled"]
    story = office("why", "i-2", "--now", NOON).out
    assert story.startswith("i-2 is cancelled\n")
    assert "NeedsFollowUp  cancelled by " in story
    assert "was taken back from" in story
    again = office("delegate", "Translate it again", "--id", "i-2", "--now", NOON)
    assert (again.code, again.out.splitlines()[0]) == (1, "i-2 is cancelled")
    assert "note: i-2 stays cancelled: delegate another intent, to follow it up" in again.out
    told = office("events", "--type", "intent", "--now", NOON).out
    assert "taken back from" in told
    assert "needs a follow-up" not in told
    assert "there are no such intents" in office("intent", "list", "--plan", "p-9").out
    assert office("intent", "show", "i-9", "--now", NOON).code == 1


def test_the_list_names_whoever_has_an_open_intent_now(office: Console) -> None:
    def agents() -> str:
        return office("intent", "list", "--now", NOON).out.splitlines()[1].split()[2]

    finish(office, success=False, error="ill")
    assert agents() == "bob"
    office("intent", "cancel", "i-1", "--now", NOON)
    assert agents() == "ada,"


def test_who_may_not_cancel_is_told_who_may(office: Console) -> None:
    said = office("intent", "cancel", "i-1", "--as", "ada", "--now", NOON)
    assert "a person, an orchestrator or a coordinator" in said.err


@proves("CCOS-TAKEN-BACK")
def test_what_a_person_stops_is_no_failure_of_the_agent(office: Console) -> None:
    office("task", "move", "i-1", "blocked", "--reason", "wait", "--now", NOON)
    told = "i-1.1 was taken back from ada: the task is blocked: wait"
    assert told in office("intent", "show", "i-1", "--now", NOON).out.splitlines()
    assert f"TaskCompleted  {told}  " in office("why", "i-1", "--now", NOON).out
    events = office("events", "--type", "intent", "--now", NOON).out
    assert "i-1.1 taken back from ada: the task is blocked: wait" in events


@proves("CCOS-TAKEN-BACK")
def test_who_was_given_up_by_a_person_has_not_failed_either(office: Console) -> None:
    office("task", "move", "i-1", "deadletter", "--now", NOON)
    shown = office("intent", "show", "i-1", "--now", NOON).out
    assert "i-1.1 was taken back from ada: the task is deadletter" in shown.splitlines()


@proves("CCOS-TAKEN-BACK")
def test_a_piece_of_the_output_is_told_as_that(office: Console) -> None:
    piece = {"intent_id": "i-1", "agent_id": "ada", "partial": {"page": 1}}
    for said in (piece, piece | {"sequence": 2}):
        office("call", "ccos.update", json.dumps(said), "--as", "ada", "--now", NOON)
    why = office("why", "i-1", "--now", NOON).out
    assert "TaskUpdated  ada: piece of the output  " in why
    assert "TaskUpdated  ada: piece 2 of the output  " in why
    assert "ada: a piece of the output" in office("events", "--type", "intent", "--now", NOON).out


@proves("CCOS-TAKEN-BACK")
def test_who_is_asked_anew_and_who_has_it_instead_are_told_apart(office: Console) -> None:
    office("task", "claim", "i-1", "--agent", "ada", "--now", NOON)
    office("task", "move", "i-1", "review", "--as", "ada", "--now", NOON)
    office("task", "move", "i-1", "ready", "--now", NOON)
    why = office("why", "i-1", "--now", NOON).out
    assert "RequestSuperseded  i-1.1: ada is asked anew  " in why
    assert "i-1.1 of ada is void: it is asked anew" in office("events", "--now", NOON).out
    [card] = (office.data / "tasks/ready").glob("*.md")
    card.write_text(card.read_text().replace("assignee: ada", "assignee: bob"))
    office("tick", "--now", NOON)
    why = office("why", "i-1", "--now", NOON).out
    assert "RequestSuperseded  i-1.2: the task is bob's now  " in why
    assert "DelegationApproved  bob passes forbidden goal, capability, trust, cost, data loc" in why


def test_whoever_has_it_by_a_handoff_is_there_by_no_score(office: Console) -> None:
    office("task", "claim", "i-1", "--agent", "ada", "--now", NOON)
    words = ("--summary", "s", "--next-step", "n", "--criterion", "c")
    to_carol = ("--to", "carol", "--task", "i-1", "--id", "h1", *words)
    office("handoff", "initiate", "--as", "ada", *to_carol, "--now", NOON)
    for action in ("accept", "activate"):
        office("handoff", action, "h1", "--as", "carol", "--now", NOON)
    assert "DelegationProposed  carol, not by a score  " in office("why", "i-1", "--now", NOON).out
    assert "carol proposed, not by a score" in office("events", "--now", NOON).out


def test_an_open_intent_shows_its_request_and_its_anomalies(office: Console) -> None:
    finish(office, success=True, output=1, error="both")
    shown = office("intent", "show", "i-1", "--now", NOON).out
    assert "i-1.1 is open with ada, due by 2026-02-09T12:10:00.000Z" in shown
    assert "anomalies: 1" in shown


def test_actions_are_asked_for(office: Console) -> None:
    said = office("intent", "actions", "--agent", "ada", "--limit", "2", "--now", NOON)
    lines = said.out.splitlines()
    assert lines[0].startswith("i-1#2  DelegationProposed")
    assert lines[-1].startswith("There are more: add --after ")
    wanted = ("--since", NOON, "--until", "2026-02-09T12:00:01Z", "--parent", "i-1#1")
    assert "DelegationProposed" in office("intent", "actions", *wanted, "--now", NOON).out
    nothing = office("intent", "actions", "--type", "Satisfied", "--now", NOON)
    assert nothing.out == "there are no such Actions\n"


def test_one_chain_is_proved_alone_and_offline(office: Console, tmp_path: Path) -> None:
    finish(office, success=True, output=1)
    chain, key = tmp_path / "i-1.chain", office.data / "keys" / "ledger.pub"
    told = office.ask("why", "i-1", "--export", str(chain), "--now", NOON)
    assert told["lines"] == 9
    elsewhere = Console(tmp_path / "nothing-here")
    proved = elsewhere.ask("verify", "--chain", str(chain), "--key", str(key))
    assert (proved["entries"], proved["anchored"], proved["findings"]) == (7, 7, [])
    said = elsewhere("verify", "--chain", str(chain))
    assert "intent:i-1: 7 entries, each hash fits: all good" in said.out
    assert "the key is the file's own" in said.out
    assert not (tmp_path / "nothing-here").exists()
    bare = tmp_path / "bare.chain"
    bare.write_text("\n".join(chain.read_text().splitlines()[:-1]))
    for more in ((), ("--allow-tail",)):
        told = elsewhere.ask("verify", "--chain", str(bare), "--key", str(key), *more, code=1)
        assert "covers 7 of 7 entries" in str(told["detail"])
    assert "all good" not in elsewhere("verify", "--chain", str(bare)).out
    chain.write_text(chain.read_text().replace("Translate", "Destroy!!"))
    broken = elsewhere("verify", "--chain", str(chain))
    assert broken.code == 1
    assert "NOT good" in broken.out
    assert elsewhere.ask("verify", "--chain", str(chain), code=1)["code"] == "ledger_broken"


def test_a_chain_that_no_checkpoint_covers_is_told(office: Console, tmp_path: Path) -> None:
    (office.data / "checkpoints.jsonl").unlink()
    chain = tmp_path / "i-1.chain"
    office.ask("why", "i-1", "--export", str(chain), "--now", NOON)
    assert "no checkpoint covers them" in office("verify", "--chain", str(chain)).out
    nowhere = office("why", "i-1", "--export", str(tmp_path / "no" / "x"), "--now", NOON)
    assert nowhere.code == 2


def test_a_long_result_is_sent_from_a_file(office: Console, tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    said = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": "x" * 1_000_000}
    file.write_text(json.dumps(said))
    assert office("lint", "--dialect", "ccos", "--strict", str(file)).code == 0
    told = office.ask("send", str(file), "--now", NOON)
    assert told["reply"]["state"] == "Satisfied"
    assert told["tasks"][0]["status"] == "done"


def test_what_an_agent_offers_is_shown(office: Console) -> None:
    finish(office, success=True, output=1)
    shown = office("agent", "show", "ada", "--now", NOON).out
    assert "can translate, French; trust T2" in shown
    assert "1 of 1 requests went well; 0 are open" in shown
    office.ask("delegate", "translate more French", "--id", "i-9", "--now", NOON)
    shown = office("agent", "show", "ada", "--now", NOON).out
    assert "1 of 1 requests went well; 1 is open" in shown
    told = office.ask("agent", "show", "bob", "--now", NOON)["offer"]
    assert (told["skills"], told["cost"], told["capacity"]) == (["translate"], 0.5, 2)
    assert "offer" not in office.ask("agent", "show", "eva", "--now", NOON)


def test_an_agent_keeps_what_is_not_said_anew(office: Console) -> None:
    told = office.ask("agent", "add", "ada", "--cost", "2", "--no-token", "--now", NOON)
    assert told["skills"] == ["translate", "French"]
    said = office("agent", "add", "ada", "--skill", "sing", "--no-token", "--now", NOON)
    assert "it can sing" in said.out
    row = json.loads(office("call", "ccos.agents", '{"skill":"sing"}', "--now", NOON).out)
    assert (row["agents"][0]["trust"], row["agents"][0]["cost"]) == ("T2", 2.0)


@pytest.fixture
def host() -> Generator[Receiver]:
    """Give a host that has an agent's card."""
    with receiving() as receiver:
        yield receiver


@proves("CCOS-CARDS")
def test_agents_are_discovered_by_their_cards(
    office: Console, tmp_path: Path, host: Receiver
) -> None:
    file = tmp_path / "card.json"
    file.write_text(json.dumps(CARD))
    said = office("agents", "discover", str(file), "--trust", "T1", "--now", NOON)
    assert said.out.splitlines()[0] == "planner can routes"
    body = json.dumps(CARD | {"name": "Elsewhere"}).encode()
    host.answers += [
        text(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)),
        status(404),
        text(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n<>"),
    ]
    there = ("agents", "discover", host.url(path=""), "--allow-host", "127.0.0.1", "--now", NOON)
    assert office.ask(*there, "--name", "far")["agent_id"] == "far"
    assert host.requests[0].line == "GET /.well-known/agent-card.json HTTP/1.1"
    assert "answered 404" in office(*there).err
    assert "holds no agent card" in office(*there).err
    local = office("agents", "discover", host.url(), "--now", NOON)
    assert local.code == 1
    assert "loopback" in local.err
