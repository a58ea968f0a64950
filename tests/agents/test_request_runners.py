"""CCOS agents: as a program, behind a URL, and as a function in the process of the hub."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.agents.function_runner import FunctionRunner
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import ReleaseTask
from dragoman.core.errors import SettingsError
from dragoman.core.intent.state import ExpireRequest, Intent
from dragoman.core.task_state import MoveTask
from dragoman.engine.auth import Principal
from dragoman.engine.ports import Assignment
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.request import Accepted
from tests.agents import function_agents
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
print(json.dumps(answer | {"success": True, "output": request["meta"]["task"]["title"]}))
"""
)

VERBOSE = (
    ANSWER
    + """
print("beside it")
print(json.dumps(answer | {"progress": 0.5, "partial": "the first fruit"}))
print(json.dumps(answer | {"success": True, "output": "the whole harvest"}))
"""
)

ASSIGNMENT = Assignment("ada", "T", "TASK-2026-02-09-001", "t", 1, 1, "s-1", 1_000, "do it")


def ccos_section(name: str, **settings: Any) -> str:
    """Settings of a CCOS agent."""
    fields = {"speaks": ["ccos"], "takes_unassigned": False} | settings
    return f"[agents.{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fields.items())


def python_command(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def delegate(hub: RunningHub, *agents: str) -> None:
    """Register these agents and delegate an intent to the first."""
    for cost, agent in enumerate(agents):
        call_operation(hub, "ccos.register", agent_id=agent, skills=["sum"], cost=cost)
    call_operation(hub, "ccos.delegate", goal="sum it up", intent_id="i-1")


def call_operation(hub: RunningHub, operation: str, **arguments: Any) -> Any:
    answer = hub.directory.router.call(operation, arguments, PERSON)
    assert isinstance(answer, Accepted), answer
    return answer.reply


def stored_intent(hub: RunningHub) -> Intent:
    found = find_intent(hub.store, "i-1")
    assert isinstance(found, Intent)
    return found


async def wait_for_state(hub: RunningHub, *states: str) -> dict[str, Any]:
    """Wait until the intent has one of these states and return it."""
    await hub.until(lambda: stored_intent(hub).state in states)
    await hub.until_idle()
    return call_operation(hub, "ccos.intent", intent_id="i-1")


def json_answer(value: object) -> Answer:
    """Answer with this value as JSON."""
    body = json.dumps(value).encode()
    return text(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_program_reads_its_request_and_prints_its_result(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(
            tmp_path / "d", FAST + ccos_section("ada", command=python_command(GOOD))
        ) as hub:
            delegate(hub, "ada")
            found = await wait_for_state(hub, "Satisfied")
            assert found["result"]["output"] == "sum it up"
            assert found["updates"] == 1
            assert hub.task("i-1").status == "done"

    run(scenario())


@proves("CCOS-PAYLOADS")
def test_result_that_is_not_stored_is_not_in_the_trace_of_its_program(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        settings = (
            FAST
            + "[ccos]\nmax_output_bytes = 0\n"
            + ccos_section("ada", command=python_command(VERBOSE))
        )
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            assert (await wait_for_state(hub, "Satisfied"))["result"]["left_out"]
            ledger = b"".join(entry.line for entry in all_entries(hub.store))
            assert ledger.count(b"bytes: its content is left out") == 3
            assert b"whole harvest" not in ledger
            assert b"first fruit" not in ledger

    run(scenario())


@proves("CCOS-PAYLOADS")
def test_result_over_several_lines_is_not_in_the_trace(tmp_path: Path) -> None:
    source = (
        ANSWER
        + """
import sys
print(json.dumps(answer | {"success": True, "output": "the whole harvest"}, indent=1))
print("the whole harvest", file=sys.stderr)
"""
    )

    async def scenario() -> None:
        settings = (
            FAST
            + "[ccos]\nmax_output_bytes = 0\n"
            + ccos_section("ada", command=python_command(source))
        )
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            await wait_for_state(hub, "NeedsFollowUp")
            assert b"whole harvest" not in b"".join(entry.line for entry in all_entries(hub.store))

    run(scenario())


@proves("REPORT-COST")
@pytest.mark.parametrize("outcome", ['"success": True', '"success": False, "error": "no"'])
def test_cost_in_a_result_counts_toward_the_budget(tmp_path: Path, outcome: str) -> None:
    source = ANSWER + f"print(json.dumps(answer | {{{outcome}, 'cost': 0.3}}))"

    async def scenario() -> None:
        settings = (
            FAST + ccos_section("ada", command=python_command(source)) + "cost_per_day = 10\n"
        )
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            await wait_for_state(hub, "Satisfied", "NeedsFollowUp")
            assert hub.state("ada").usage.cost == 0.3

    run(scenario())


@proves("CCOS-ATTEMPT")
def test_result_for_another_intent_is_recorded_as_an_anomaly(tmp_path: Path) -> None:
    stray = 'print(json.dumps(answer | {"intent_id": "other", "success": True}))'

    async def scenario() -> None:
        settings = FAST + ccos_section("ada", command=python_command(ANSWER + stray))
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            assert (await wait_for_state(hub, "NeedsFollowUp"))["anomalies"] == 1
            history = call_operation(hub, "ccos.intent", intent_id="i-1")["history"]
            (anomaly,) = [one for one in history if one["state"] == "Anomaly"]
            assert "this attempt works on i-1" in anomaly["details"]["reason"]

    run(scenario())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (ANSWER, "it ended without a result"),
        ("raise SystemExit(3)", "exit code 3"),
        (
            ANSWER + 'print(json.dumps(answer | {"success": True, "error": "both"}))',
            "a success has no error",
        ),
        (ANSWER + 'print(json.dumps(answer | {"success": False, "error": "no ink"}))', "no ink"),
    ],
    ids=["silent", "broken", "refused", "reported"],
)
def test_failed_program_is_followed_by_the_next_candidate(
    tmp_path: Path, source: str, reason: str
) -> None:
    settings = (
        FAST
        + ccos_section("ada", command=python_command(source))
        + ccos_section("bob", command=python_command(GOOD))
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada", "bob")
            found = await wait_for_state(hub, "Satisfied")
            assert found["tried"] == ["ada", "bob"]
            (failed,) = [one for one in found["history"] if one.get("success") is False][:1]
            assert reason in failed["error"]

    run(scenario())


@pytest.fixture
def agent() -> Generator[Receiver]:
    """Give an agent behind a URL."""
    with receiving() as receiver:
        yield receiver


def url_section(agent: Receiver) -> str:
    return FAST + ccos_section("ada", url=agent.url(), allow_hosts=["127.0.0.1"])


def test_url_may_answer_with_the_result_immediately(tmp_path: Path, agent: Receiver) -> None:
    agent.answers.append(
        json_answer({"intent_id": "i-1", "agent_id": "ada", "success": True, "output": [1]})
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", url_section(agent)) as hub:
            delegate(hub, "ada")
            found = await wait_for_state(hub, "Satisfied")
            assert found["result"]["output"] == [1]

    run(scenario())


def test_url_may_send_its_result_later(tmp_path: Path, agent: Receiver) -> None:
    agent.answers.append(status(202))

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", url_section(agent)) as hub:
            delegate(hub, "ada")
            await asyncio.to_thread(agent.is_done.wait, 30)
            posted = json.loads(agent.requests[0].body)
            assert (posted["goal"], posted["request_id"]) == ("sum it up", "i-1.1")
            principal = hub.identity.authenticate(posted["meta"]["hub"]["token"], "http")
            assert isinstance(principal, Principal)
            result = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 2}
            answer = await hub.directory.router.send_async(result, speaker=principal.actor)
            assert isinstance(answer, Accepted)
            assert (await wait_for_state(hub, "Satisfied"))["result"]["output"] == 2

    run(scenario())


@proves("CCOS-PASSED-ON")
def test_url_receives_extra_fields_of_the_request(tmp_path: Path, agent: Receiver) -> None:
    request = {"intent_id": "i-1", "agent_id": "ada", "goal": "sum it up"}
    meta = {"trace": "t-7", "session": "s-of-its-sender", "hub": "x"}
    agent.answers.append(json_answer(request | {"success": True, "output": 1}))

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", url_section(agent)) as hub:
            call_operation(hub, "ccos.register", agent_id="ada", skills=["sum"])
            call_operation(hub, "ccos.request", **request, meta=meta, x_team="blue")
            await wait_for_state(hub, "Satisfied")
            posted = json.loads(agent.requests[0].body)
            assert posted["meta"].pop("task")["title"] == "sum it up"
            assert {**posted["meta"], "hub": "x"} == meta
            assert posted["x_team"] == "blue"
            assert posted["meta"]["hub"]["token"].startswith("drga_")

    run(scenario())


@proves("CCOS-UNSENT")
def test_unreachable_agent_is_not_blamed_when_the_request_expires(
    tmp_path: Path, agent: Receiver
) -> None:
    agent.answers += [status(503)] * 100

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", url_section(agent)) as hub:
            call_operation(hub, "ccos.register", agent_id="ada", skills=["sum"])
            call_operation(hub, "ccos.delegate", goal="sum it up", intent_id="i-1", within_ms=1_000)
            await hub.until(lambda: hub.task("i-1").failed_starts is not None)
            await asyncio.sleep(1)
            await hub.until(lambda: hub.task("i-1").status == "ready")
            await hub.directory.hub.submit_async(HUB_ACTOR, ExpireRequest("i-1", is_called=True))
            found = await wait_for_state(hub, "NeedsFollowUp")
            assert found["result"]["synthetic"] == "unsent"
            assert found["result"]["error"].endswith("the agent's URL answered 503")
            assert call_operation(hub, "ccos.agents")["agents"][0]["failures"] == 0

    run(scenario())


def test_undelivered_request_is_resent_under_the_same_id(tmp_path: Path, agent: Receiver) -> None:
    agent.answers += [
        status(503),
        json_answer({"intent_id": "i-1", "agent_id": "ada", "success": True, "output": 3}),
    ]

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", url_section(agent)) as hub:
            delegate(hub, "ada")
            found = await wait_for_state(hub, "Satisfied")
            assert found["requests"] == 1
            ids = {json.loads(request.body)["request_id"] for request in agent.requests}
            assert (len(agent.requests), ids) == (2, {"i-1.1"})

    run(scenario())


@pytest.mark.parametrize(
    "function", [function_agents.answer_in_capitals, function_agents.answer_in_capitals_async]
)
def test_function_is_called_with_the_request(
    tmp_path: Path, function: Callable[[bytes], object]
) -> None:
    settings = FAST + ccos_section(
        "ada", function=f"tests.agents.function_agents:{function.__name__}"
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            found = await wait_for_state(hub, "Satisfied")
            assert found["result"]["output"] == "SUM IT UP"
            assert function_agents.requests[-1]["meta"]["hub"]["session"]

    run(scenario())


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (function_agents.raise_error, "RuntimeError: out of ink"),
        (function_agents.answer_no_result, "no message"),
        (function_agents.answer_no_bytes, "its function gave dict, not bytes"),
        (function_agents.exit_process, "SystemExit"),
    ],
)
def test_failure_of_a_function_fails_the_request(
    tmp_path: Path, function: Callable[[bytes], bytes], reason: str
) -> None:
    settings = FAST + ccos_section(
        "ada", function=f"tests.agents.function_agents:{function.__name__}"
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            delegate(hub, "ada")
            found = await wait_for_state(hub, "NeedsFollowUp")
            assert reason in found["result"]["error"]

    run(scenario())


def test_hanging_function_is_abandoned_when_stopped() -> None:
    """Its own daemon thread blocks neither other agents nor the end of the hub."""
    received: list[bytes] = []

    async def receive(message: bytes) -> str:
        received.append(message)
        return ""

    async def scenario() -> None:
        runner = FunctionRunner(lambda _: b"{}", function_agents.block)
        running = await runner.start(ASSIGNMENT, receive)
        await asyncio.to_thread(function_agents.has_started.wait, 30)
        (thread,) = [one for one in threading.enumerate() if one.name == "agent-function"]
        assert thread.daemon
        await running.stop(0)
        assert (await running.wait()).problem == "it was stopped"
        function_agents.may_return.set()
        await asyncio.to_thread(thread.join, 30)
        assert received == []

    run(scenario())


def test_cancelled_intent_stops_its_program(tmp_path: Path) -> None:
    source = (
        ANSWER + "import threading\nprint(json.dumps(answer | {'message': 'here'}), flush=True)"
    )
    source += "\nthreading.Event().wait()"

    async def scenario() -> None:
        async with running_hub(
            tmp_path / "d", FAST + ccos_section("ada", command=python_command(source))
        ) as hub:
            delegate(hub, "ada")
            await hub.until(lambda: stored_intent(hub).updates == 1)
            hub.do(MoveTask("intent:i-1", "cancelled", "enough"))
            found = await wait_for_state(hub, "NeedsFollowUp")
            states = [one["state"] for one in found["history"]]
            assert "FeedbackApplied" not in states

    run(scenario())


@proves("CCOS-PROMPT")
def test_agent_of_another_dialect_gets_params_and_constraints_in_its_prompt(tmp_path: Path) -> None:
    report = (
        "import os, re, sys\n"
        "told = sys.stdin.read()\n"
        "open(os.path.join(os.environ['DRAGOMAN_FOLDER'], 'work', 'told'), 'w').write(told)\n"
        "print(re.search('^    (AOF/1 .*)', told, re.M)[1])\n"
    )
    settings = FAST + ccos_section("ada", command=python_command(report), speaks=["aof"])

    async def scenario() -> None:
        async with running_hub(tmp_path / "d", settings) as hub:
            call_operation(hub, "ccos.register", agent_id="ada", skills=["weld"])
            extras = {"params": {"thickness": 5}, "constraints": ["gently"]}
            call_operation(hub, "ccos.delegate", goal="weld it\x1b[2J", intent_id="i-1", **extras)
            found = await wait_for_state(hub, "Satisfied")
            assert found["result"]["output"]["notes"] == "what you did"
            (prompt,) = (tmp_path / "d" / "tasks").glob("*/*/work/told")
            assert '"thickness": 5' in prompt.read_text()
            assert "due by" in prompt.read_text()
            assert "\x1b" not in prompt.read_text()

    run(scenario())


def test_task_of_another_dialect_arrives_as_a_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(
            tmp_path / "d", FAST + ccos_section("ada", command=python_command(GOOD))
        ) as hub:
            task = hub.make("Sum up the year", body="All of it.", assignee="ada")
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert done.reported.details == {"output": "Sum up the year"}
            await hub.until_idle()

    run(scenario())


HANDED_OVER = (
    ANSWER
    + """
print(json.dumps(answer | {"success": True, "output": request["meta"]["task"]["handed_over"]}))
"""
)


@proves("ACP-OWNER", "RUN-PROMPT")
def test_request_for_a_handed_over_task_includes_the_package(tmp_path: Path) -> None:
    ada, bob = Actor("agent", "ada"), Actor("agent", "bob")

    async def scenario() -> None:
        settings = FAST + ccos_section("ada", command=python_command(HANDED_OVER))
        async with running_hub(tmp_path / "d", settings) as hub:
            offered = hub.directory.router.call("acp_handoff", offer("ada"), bob)
            assert isinstance(offered, Accepted)
            id = offered.reply["handoff_id"]
            for action in (
                {"action": "accept"},
                {"action": "activate", "work_state_update": {"next_step": "Draw it."}},
            ):
                done = hub.directory.router.call("acp_handoff", {"handoff_id": id, **action}, ada)
                assert isinstance(done, Accepted), done
            hub.do(ReleaseTask("t-1"), actor=ada)
            ended = await hub.until_status("t-1", "review")
            assert ended.reported is not None
            handed_over = msgspec.convert(ended.reported.details["output"], dict[str, Any])
            assert (handed_over["handoff_id"], handed_over["from"]) == (id, "bob")
            assert handed_over["package"]["context"]["summary"] == "Half of it is there."
            assert handed_over["package"]["work_state_update"] == {"next_step": "Draw it."}
            assert "policy" not in handed_over["package"]
            await hub.until_idle()

    run(scenario())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"function": "tests.agents.function_agents:missing"}, "cannot be found"),
        ({"function": "no.such.module:x"}, "cannot be found"),
        (
            {"function": "tests.agents.function_agents:answer_in_capitals", "speaks": ["aof"]},
            "add speaks",
        ),
        ({"function": "a:b", "url": "http://x"}, "keep one of them"),
    ],
)
def test_contradictory_settings_are_refused(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    async def scenario() -> None:
        with pytest.raises(SettingsError, match=reason):
            async with running_hub(tmp_path / "d", ccos_section("ada", **settings), start=False):
                pass

    run(scenario())
