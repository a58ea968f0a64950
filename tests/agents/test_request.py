"""Agents that are asked in CCOS: as a program, behind a URL, as a function of the hub's process."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agents.request import FunctionRunner
from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import ExpireRequest, MoveTask, ReleaseTask
from dragoman.core.errors import SettingsError
from dragoman.core.states.intent import Intent
from dragoman.engine.identity import Principal
from dragoman.engine.plan import Taken
from dragoman.engine.reads.ask import entries
from dragoman.engine.reads.intents import find_intent
from dragoman.engine.runner import Assignment
from tests.agents import answering
from tests.agents.running_hub import FAST, PERSON, RunningHub, run, running_hub
from tests.notify.receiver import Answer, Receiver, receiving, status, text
from tests.protocols.acp.hub import offer
from tests.requirements import proves

pytestmark = proves("CCOS-RUNNERS")

ANSWER = """
import json, sys
request = json.loads(sys.stdin.readline())
answer = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
"""
GOOD = (
    ANSWER
    + """
print("thinking aloud")
print(json.dumps(answer | {"progress": 0.5, "message": "half"}))
print(json.dumps(answer | {"success": True, "output": request["params"]["task"]["title"]}))
"""
)

TELLING = (
    ANSWER
    + """
print("beside it")
print(json.dumps(answer | {"progress": 0.5, "partial": "the first fruit"}))
print(json.dumps(answer | {"success": True, "output": "the whole harvest"}))
"""
)

ASSIGNMENT = Assignment("ada", "T", "TASK-2026-02-09-001", "t", 1, 1, "s-1", 1_000, "do it")


def section(name: str, **settings: Any) -> str:
    """The settings of an agent that is asked in CCOS."""
    said = {"speaks": ["ccos"], "takes_any": False} | settings
    return f"[agents.{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in said.items())


def program(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def delegate(hub: RunningHub, *agents: str) -> None:
    """Have these agents registered, and an intent delegated to the first."""
    for cost, agent in enumerate(agents):
        call(hub, "ccos.register", agent_id=agent, skills=["sum"], cost=cost)
    call(hub, "ccos.delegate", goal="sum it up", intent_id="i-1")


def call(hub: RunningHub, operation: str, **arguments: Any) -> Any:
    answer = hub.directory.interpreter.call(operation, arguments, PERSON)
    assert isinstance(answer, Taken), answer
    return answer.reply


def intent(hub: RunningHub) -> Intent:
    found = find_intent(hub.store, "i-1")
    assert isinstance(found, Intent)
    return found


async def until(hub: RunningHub, *states: str) -> dict[str, Any]:
    """The intent when it has come so far."""
    await hub.until(lambda: intent(hub).state in states)
    await hub.until_idle()
    return call(hub, "ccos.intent", intent_id="i-1")


def reply(value: object) -> Answer:
    """Answer with this as JSON."""
    body = json.dumps(value).encode()
    return text(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_program_reads_its_request_and_prints_its_result(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "d", FAST + section("ada", command=program(GOOD))) as hub:
            delegate(hub, "ada")
            found = await until(hub, "Satisfied")
            assert found["result"]["output"] == "sum it up"
            assert found["updates"] == 1
            assert hub.task("i-1").status == "done"

    run(story())


@proves("CCOS-PAYLOADS")
def test_what_is_not_kept_of_a_result_is_not_in_the_trace_of_its_program_either(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        settings = FAST + "[ccos]\npayload_bytes = 0\n" + section("ada", command=program(TELLING))
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            assert (await until(hub, "Satisfied"))["result"]["left_out"]
            said = b"".join(entry.line for entry in entries(hub.store))
            assert said.count(b"bytes: what it says is not told here") == 3
            assert b"whole harvest" not in said
            assert b"first fruit" not in said

    run(story())


@proves("CCOS-PAYLOADS")
def test_nor_where_it_goes_over_many_lines(tmp_path: Path) -> None:
    told = (
        ANSWER
        + """
import sys
print(json.dumps(answer | {"success": True, "output": "the whole harvest"}, indent=1))
print("the whole harvest", file=sys.stderr)
"""
    )

    async def story() -> None:
        settings = FAST + "[ccos]\npayload_bytes = 0\n" + section("ada", command=program(told))
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            await until(hub, "NeedsFollowUp")
            assert b"whole harvest" not in b"".join(entry.line for entry in entries(hub.store))

    run(story())


@proves("REPORT-COST")
@pytest.mark.parametrize("ended", ['"success": True', '"success": False, "error": "no"'])
def test_what_its_result_has_cost_counts_for_its_budget(tmp_path: Path, ended: str) -> None:
    told = ANSWER + f"print(json.dumps(answer | {{{ended}, 'cost': 0.3}}))"

    async def story() -> None:
        settings = FAST + section("ada", command=program(told)) + "cost_per_day = 10\n"
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            await until(hub, "Satisfied", "NeedsFollowUp")
            assert hub.state("ada").used.cost == 0.3

    run(story())


@proves("CCOS-ATTEMPT")
def test_what_a_program_says_about_another_intent_is_an_anomaly_of_its_own(tmp_path: Path) -> None:
    stray = 'print(json.dumps(answer | {"intent_id": "other", "success": True}))'

    async def story() -> None:
        settings = FAST + section("ada", command=program(ANSWER + stray))
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            assert (await until(hub, "NeedsFollowUp"))["anomalies"] == 1
            (odd,) = call(hub, "ccos.actions", intent_id="i-1", type="Anomaly")["actions"]
            assert "i-1 was asked for" in odd["details"]["reason"]

    run(story())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ANSWER, "it ended without a result"),
        ("raise SystemExit(3)", "exit code 3"),
        (
            ANSWER + 'print(json.dumps(answer | {"success": True, "error": "both"}))',
            "a success has no error",
        ),
        (ANSWER + 'print(json.dumps(answer | {"success": False, "error": "no ink"}))', "no ink"),
    ],
    ids=["silent", "broken", "refused", "honest"],
)
def test_a_program_that_fails_is_followed_by_the_next_candidate(
    tmp_path: Path, text: str, why: str
) -> None:
    settings = FAST + section("ada", command=program(text)) + section("bob", command=program(GOOD))

    async def story() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada", "bob")
            found = await until(hub, "Satisfied")
            assert found["tried"] == ["ada", "bob"]
            (lost,) = [one for one in found["history"] if one.get("success") is False][:1]
            assert why in lost["error"]

    run(story())


@pytest.fixture
def agent() -> Generator[Receiver]:
    """Give an agent behind a URL."""
    with receiving() as receiver:
        yield receiver


def url(agent: Receiver) -> str:
    return FAST + section("ada", url=agent.url(), allow_hosts=["127.0.0.1"])


def test_a_url_may_answer_with_the_result_at_once(tmp_path: Path, agent: Receiver) -> None:
    agent.answers.append(
        reply({"intent_id": "i-1", "agent_id": "ada", "success": True, "output": [1]})
    )

    async def story() -> None:
        async with running_hub(tmp_path / "d", url(agent)) as hub:
            delegate(hub, "ada")
            found = await until(hub, "Satisfied")
            assert found["result"]["output"] == [1]

    run(story())


def test_a_url_may_hand_its_result_in_later(tmp_path: Path, agent: Receiver) -> None:
    agent.answers.append(status(202))

    async def story() -> None:
        async with running_hub(tmp_path / "d", url(agent)) as hub:
            delegate(hub, "ada")
            await asyncio.to_thread(agent.is_done.wait, 30)
            posted = json.loads(agent.requests[0].body)
            assert (posted["goal"], posted["request_id"]) == ("sum it up", "i-1.1")
            who = hub.identity.who(posted["meta"]["hub"]["token"], "http")
            assert isinstance(who, Principal)
            said = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 2}
            answer = await hub.directory.interpreter.send_soon(said, speaker=who.actor)
            assert isinstance(answer, Taken)
            assert (await until(hub, "Satisfied"))["result"]["output"] == 2

    run(story())


@proves("CCOS-PASSED-ON")
def test_a_url_is_told_what_else_the_request_says(tmp_path: Path, agent: Receiver) -> None:
    said = {"intent_id": "i-1", "agent_id": "ada", "goal": "sum it up"}
    meta = {"trace": "t-7", "session": "s-of-its-sender", "hub": "x"}
    agent.answers.append(reply(said | {"success": True, "output": 1}))

    async def story() -> None:
        async with running_hub(tmp_path / "d", url(agent)) as hub:
            call(hub, "ccos.register", agent_id="ada", skills=["sum"])
            call(hub, "ccos.request", **said, meta=meta, x_team="blue")
            await until(hub, "Satisfied")
            posted = json.loads(agent.requests[0].body)
            assert {**posted["meta"], "hub": "x"} == meta
            assert posted["x_team"] == "blue"
            assert posted["meta"]["hub"]["token"].startswith("drga_")

    run(story())


@proves("CCOS-UNSENT")
def test_who_could_not_be_reached_in_time_is_not_blamed(tmp_path: Path, agent: Receiver) -> None:
    agent.answers += [status(503)] * 100

    async def story() -> None:
        async with running_hub(tmp_path / "d", url(agent)) as hub:
            call(hub, "ccos.register", agent_id="ada", skills=["sum"])
            call(hub, "ccos.delegate", goal="sum it up", intent_id="i-1", within_ms=1_000)
            await hub.until(lambda: hub.task("i-1").unstarted is not None)
            await asyncio.sleep(1)
            await hub.until(lambda: hub.task("i-1").status == "ready")
            await hub.directory.hub.do_soon(SYSTEM, ExpireRequest("i-1", is_called=True))
            found = await until(hub, "NeedsFollowUp")
            assert found["result"]["synthetic"] == "unsent"
            assert found["result"]["error"].endswith("the agent's URL answered 503")
            assert call(hub, "ccos.agents")["agents"][0]["failures"] == 0

    run(story())


def test_what_could_not_be_handed_over_is_handed_over_again_under_the_same_name(
    tmp_path: Path, agent: Receiver
) -> None:
    agent.answers += [
        status(503),
        reply({"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 3}),
    ]

    async def story() -> None:
        async with running_hub(tmp_path / "d", url(agent)) as hub:
            delegate(hub, "ada")
            found = await until(hub, "Satisfied")
            assert found["requests"] == 1
            names = {json.loads(request.body)["request_id"] for request in agent.requests}
            assert (len(agent.requests), names) == (2, {"i-1.1"})

    run(story())


@pytest.mark.parametrize("function", [answering.works, answering.works_later])
def test_a_function_is_called(tmp_path: Path, function: Callable[[bytes], object]) -> None:
    settings = FAST + section("ada", function=f"tests.agents.answering:{function.__name__}")

    async def story() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            found = await until(hub, "Satisfied")
            assert found["result"]["output"] == "SUM IT UP"
            assert answering.seen[-1]["meta"]["hub"]["session"]

    run(story())


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (answering.breaks, "RuntimeError: out of ink"),
        (answering.mumbles, "no message"),
        (answering.forgets, "its function gave dict, not bytes"),
        (answering.leaves, "SystemExit"),
    ],
)
def test_a_function_that_fails_has_failed(
    tmp_path: Path, function: Callable[[bytes], bytes], why: str
) -> None:
    settings = FAST + section("ada", function=f"tests.agents.answering:{function.__name__}")

    async def story() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            found = await until(hub, "NeedsFollowUp")
            assert why in found["result"]["error"]

    run(story())


def test_a_function_that_hangs_is_left_alone_when_it_is_stopped() -> None:
    """It has a thread of its own, which keeps neither other agents nor the hub's end waiting."""
    heard: list[bytes] = []

    async def hear(said: bytes) -> str:
        heard.append(said)
        return ""

    async def story() -> None:
        runner = FunctionRunner(lambda _: b"{}", answering.hangs)
        running = await runner.start(ASSIGNMENT, hear)
        await asyncio.to_thread(answering.begun.wait, 30)
        (thread,) = [one for one in threading.enumerate() if one.name == "agent-function"]
        assert thread.daemon
        await running.stop(0)
        assert (await running.wait()).problem == "it was stopped"
        answering.gate.set()
        await asyncio.to_thread(thread.join, 30)
        assert heard == []

    run(story())


def test_a_cancelled_intent_stops_its_program(tmp_path: Path) -> None:
    waits = ANSWER + "import threading\nprint(json.dumps(answer | {'message': 'here'}), flush=True)"
    waits += "\nthreading.Event().wait()"

    async def story() -> None:
        async with running_hub(
            tmp_path / "d", FAST + section("ada", command=program(waits))
        ) as hub:
            delegate(hub, "ada")
            await hub.until(lambda: intent(hub).updates == 1)
            hub.do(MoveTask("intent:i-1", "cancelled", "enough"))
            found = await until(hub, "NeedsFollowUp")
            states = [one["state"] for one in found["history"]]
            assert "FeedbackApplied" not in states

    run(story())


@proves("CCOS-PROMPT")
def test_an_agent_of_another_dialect_is_told_what_came_with_the_goal(tmp_path: Path) -> None:
    report = (
        "import os, re, sys\n"
        "told = sys.stdin.read()\n"
        "open(os.path.join(os.environ['DRAGOMAN_FOLDER'], 'work', 'told'), 'w').write(told)\n"
        "print(re.search('^    (AOF/1 .*)', told, re.M)[1])\n"
    )
    settings = FAST + section("ada", command=program(report), speaks=["aof"])

    async def story() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            call(hub, "ccos.register", agent_id="ada", skills=["weld"])
            asked = {"params": {"thickness": 5}, "constraints": ["gently"]}
            call(hub, "ccos.delegate", goal="weld it\x1b[2J", intent_id="i-1", **asked)
            found = await until(hub, "Satisfied")
            assert found["result"]["output"]["notes"] == "what you did"
            (told,) = (tmp_path / "d" / "tasks").glob("*/*/work/told")
            assert '"thickness": 5' in told.read_text()
            assert "due by" in told.read_text()
            assert "\x1b" not in told.read_text()

    run(story())


def test_a_task_of_another_dialect_reaches_it_as_a_request(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_hub(tmp_path / "d", FAST + section("ada", command=program(GOOD))) as hub:
            task = hub.make("Sum up the year", body="All of it.", assignee="ada")
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert done.reported.details == {"output": "Sum up the year"}
            await hub.until_idle()

    run(story())


HANDED_OVER = (
    ANSWER
    + """
print(json.dumps(answer | {"success": True, "output": request["params"]["task"]["handed_over"]}))
"""
)


@proves("ACP-OWNER", "RUN-PROMPT")
def test_who_is_asked_to_do_what_was_handed_over_is_told_the_package(tmp_path: Path) -> None:
    ada, bob = Actor("agent", "ada"), Actor("agent", "bob")

    async def story() -> None:
        settings = FAST + section("ada", command=program(HANDED_OVER))
        async with running_hub(tmp_path / "d", settings) as hub:
            offered = hub.directory.interpreter.call("acp_handoff", offer("ada"), bob)
            assert isinstance(offered, Taken)
            id = offered.reply["handoff_id"]
            for said in (
                {"action": "accept"},
                {"action": "activate", "work_state_update": {"next_step": "Draw it."}},
            ):
                done = hub.directory.interpreter.call(
                    "acp_handoff", {"handoff_id": id, **said}, ada
                )
                assert isinstance(done, Taken), done
            hub.do(ReleaseTask("t-1"), actor=ada)
            ended = await hub.until_status("t-1", "review")
            assert ended.reported is not None
            told = msgspec.convert(ended.reported.details["output"], dict[str, Any])
            assert (told["handoff_id"], told["from"]) == (id, "bob")
            assert told["package"]["context"]["summary"] == "Half of it is there."
            assert told["package"]["work_state_update"] == {"next_step": "Draw it."}
            assert "policy" not in told["package"]
            await hub.until_idle()

    run(story())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"function": "tests.agents.answering:nobody"}, "cannot be found"),
        ({"function": "no.such.module:x"}, "cannot be found"),
        ({"function": "tests.agents.answering:works", "speaks": ["aof"]}, "add speaks"),
        ({"function": "a:b", "url": "http://x"}, "keep one of them"),
    ],
)
def test_settings_that_cannot_be_are_told(
    tmp_path: Path, settings: dict[str, Any], why: str
) -> None:
    async def story() -> None:
        with pytest.raises(SettingsError, match=why):
            async with running_hub(tmp_path / "d", section("ada", **settings), start=False):
                pass

    run(story())
