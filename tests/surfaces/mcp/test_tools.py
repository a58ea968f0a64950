"""MCP tools, over streamable HTTP and with the client of the SDK."""

import asyncio
import json
from typing import Annotated, Any

import msgspec
import pytest
from mcp import types
from mcp.client import Client
from msgspec.structs import replace

from dragoman.bootstrap.dialects import build_dialects
from dragoman.config import NotifySettings
from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import RegisterAgent
from dragoman.core.check_state import CheckResult, RecordChecks
from dragoman.core.delegation import RequestDelegation
from dragoman.core.mail import PostMail
from dragoman.core.question_state import AnswerQuestion
from dragoman.core.task_state import CreateTask, LinkTask, MoveTask
from dragoman.engine.operation import Dialect, Operation
from dragoman.engine.queries.entries import all_entries
from dragoman.ledger.entry import read_line
from dragoman.services.dispatch.budget_enforcer import attempt_cost
from dragoman.surfaces.mcp.tool import argument_schema
from dragoman.surfaces.mcp.tools import build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import START, HubServer, serving
from tests.surfaces.mcp import fixtures
from tests.surfaces.mcp.clients import (
    PROTOCOL_VERSIONS,
    call_once,
    call_tool,
    refusal_code,
    refusal_of_call,
    run_with_client,
)
from tests.surfaces.mcp.mcp_hub import mount_mcp


def _size(tools: list[types.Tool]) -> int:
    """Bytes of a result of `tools/list`."""
    listed = types.ListToolsResult(tools=tools)
    return len(listed.model_dump_json(by_alias=True, exclude_none=True).encode())


@proves("MCP-TOOLS")
@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_task_goes_from_claim_to_complete(server: HubServer, mode: str) -> None:
    task = server.submit(CreateTask("Mend it", body="The roof leaks.", ready=True))

    async def work(client: Client) -> None:
        assert client.protocol_version == PROTOCOL_VERSIONS[mode]
        assert client.instructions is not None
        assert "claim" in client.instructions
        claimed = await call_tool(client, "claim", task=task, minutes=20)
        assert claimed["about"]["body"] == "The roof leaks."
        assert claimed["expiresAt"] == "2026-02-09T21:15:00.000Z"
        fence = claimed["fence"]
        updated = await call_tool(client, "update", task=task, progress="half", fence=fence)
        assert updated == {
            "task": task,
            "status": "in-progress",
            "expiresAt": "2026-02-09T21:15:00.000Z",
        }
        renewed = await call_tool(client, "heartbeat", task=task, fence=fence)
        assert (renewed["attempt"], renewed["fence"]) == (1, fence)
        done = await call_tool(client, "complete", task=task, notes="dry", details={"rain": 3})
        assert done == {"task": task, "status": "review"}

    run_with_client(server, "ada", work, mode)

    task_shown = call_once(server, "ada", "read", task=task, history=2)
    assert task_shown["report"]["notes"] == "dry"
    assert [entry["type"] for entry in task_shown["history"]] == [
        "task.reported",
        "task.transitioned",
    ]


@proves("MCP-TOOLS", "IDEM-REPEAT")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("release", {}),
        ("complete", {"outcome": "failed", "notes": "no"}),
        ("task_limit", {"until": "2026-02-09T21:00:00Z"}),
        ("complete", {"outcome": "limited", "until": "2026-02-09T21:00:00Z"}),
    ],
)
def test_end_of_an_attempt_again_succeeds(
    server: HubServer, tool: str, arguments: dict[str, Any]
) -> None:
    agent = f"yve-{arguments.get('outcome', tool)}"  # a usage limit pauses it
    server.add_agent(agent)
    task = server.submit(CreateTask("Mend it", ready=True))

    async def end_twice(client: Client) -> None:
        await call_tool(client, "claim", task=task)
        first = await call_tool(client, tool, task=task, **arguments)
        assert await call_tool(client, tool, task=task, **arguments) == first
        assert await refusal_code(client, "release", task=task, reason="late") == "lease_lost"

    run_with_client(server, agent, end_twice)


@proves("MCP-TOOLS", "EVIDENCE-CHECKS")
def test_completion_says_that_the_hub_runs_its_checks(server: HubServer) -> None:
    task = server.submit(CreateTask("Mend it", ready=True, checks=("make test",)))

    async def work(client: Client) -> Any:
        await call_tool(client, "claim", task=task)
        return await call_tool(client, "complete", task=task)

    done = run_with_client(server, "ada", work)
    assert done["status"] == "review"
    assert done["checks"] == "the hub runs the checks of this task now; `read` shows their results"
    server.submit(RecordChecks(task, 1, (CheckResult("make test", 0),)), actor=HUB_ACTOR)
    assert call_once(server, "ada", "read", task=task)["evidence"]["passed"] is True


@proves("MCP-TOOLS")
def test_concurrent_claims_get_different_tasks(server: HubServer) -> None:
    server.add_agent("zed")
    for number in range(8):
        server.submit(CreateTask(f"Race {number}", ready=True, assignee="zed"))

    async def race(client: Client) -> list[Any]:
        return await asyncio.gather(*(call_tool(client, "claim") for _ in range(8)))

    assert len({claimed["task"] for claimed in run_with_client(server, "zed", race)}) == 8


@proves("MCP-TOOLS", "QUESTION-WAIT")
def test_waiting_client_gets_the_answer(server: HubServer) -> None:
    task = server.submit(CreateTask("Paint it", ready=True))
    call_once(server, "ada", "claim", task=task)

    async def ask(client: Client) -> Any:
        asking = asyncio.create_task(
            call_tool(client, "ask", task=task, question="Red or blue?", wait=300)
        )
        while not (await asyncio.to_thread(server.get, f"/v1/tasks/{task}"))["questions"]:
            continue
        await asyncio.to_thread(server.submit, AnswerQuestion(task, "Blue."))
        return await asking

    answered = run_with_client(server, "ada", ask)
    assert (answered["question"], answered["state"], answered["answer"]) == (
        "q1",
        "answered",
        "Blue.",
    )
    open_one = call_once(server, "ada", "ask", task=task, question="How thick?", go_on=True)
    assert (open_one["state"], "answer" in open_one) == ("open", False)
    refused = refusal_of_call(server, "ada", "ask", task="nowhere", question="?", wait=300)
    assert refused == "task_not_found"


@proves("MCP-TOOLS", "NOTIFY-ATTENTION")
def test_question_of_which_nobody_is_told_has_a_warning() -> None:
    server = HubServer()
    quiet = replace(server.deps.settings, notify=NotifySettings(inbox=False))
    server.deps = replace(server.deps, settings=quiet)
    with serving(mount_mcp(server)):
        server.add_agent("ada")
        task = server.submit(CreateTask("Paint it", ready=True))
        call_once(server, "ada", "claim", task=task)
        (warning,) = call_once(server, "ada", "ask", task=task, question="Red?")["warnings"]
    assert warning.startswith("nobody is told of the question")


@proves("MCP-TOOLS", "TASK-OBSTACLE", "BRIEFING")
def test_question_with_notifications_has_no_warning() -> None:
    server = HubServer()
    notify = NotifySettings(command=("tell-them",), inbox=False)
    server.deps = replace(server.deps, settings=replace(server.deps.settings, notify=notify))
    with serving(mount_mcp(server)):
        server.add_agent("ada")
        task = server.submit(CreateTask("Paint it", ready=True))
        call_once(server, "ada", "claim", task=task)
        request = call_once(server, "ada", "ask", task=task, question="Red or blue?")
        read = call_once(server, "ada", "read", task=task)
        inbox = call_once(server, "ada", "inbox")
        server.submit(AnswerQuestion(task, "Blue."))
        claimed = call_once(server, "ada", "claim", task=task)
    (answered,) = claimed["briefing"]["answers"]
    assert (answered["text"], answered["answer"]) == ("Red or blue?", "Blue.")
    assert "answers" not in claimed["about"], "what the briefing has is not told twice"
    assert request == {"task": task, "status": "blocked"}
    assert read["obstacle"] == "Red or blue?"
    assert [one["obstacle"] for one in inbox["blocked"]] == ["Red or blue?"]
    assert notify.notifies_on("blocked")
    assert not replace(notify, statuses=("done",)).notifies_on("blocked")


@proves("MCP-TOOLS", "REPORT-COST")
@pytest.mark.parametrize("outcome", ["done", "failed"])
def test_report_records_cost(server: HubServer, outcome: str) -> None:
    task = server.submit(CreateTask("Dear", ready=True))
    call_once(server, "ada", "claim", task=task)
    call_once(server, "ada", "complete", task=task, outcome=outcome, details={"cost": 0.3})
    assert attempt_cost(server.store, task, 1) == 0.3


@proves("MCP-IDENTITY")
def test_entries_name_agent_and_surface(server: HubServer) -> None:
    task = server.submit(CreateTask("Signed", ready=True))

    call_once(server, "ada", "claim", task=task)

    last = [read_line(entry.line) for entry in all_entries(server.store)][-1]
    assert (last.event, last.actor, last.via) == ("task.claimed", "agent:ada", "mcp")


@proves("MCP-IDENTITY")
def test_attempt_token_is_limited_to_its_task(server: HubServer) -> None:
    task, other_task = (
        server.submit(CreateTask(title, ready=True)) for title in ("Mine", "Not mine")
    )
    fence = call_once(server, "ada", "claim", task=task)["fence"]
    server.tokens["attempt"] = server.identity.issue_attempt_token("ada", task, fence, 60_000)

    assert (
        call_once(server, "attempt", "update", task=task, progress="half")["status"]
        == "in-progress"
    )
    assert refusal_of_call(server, "attempt", "claim", task=other_task) == "not_authorized"
    assert refusal_of_call(server, "attempt", "claim") == "not_authorized"
    assert (
        refusal_of_call(server, "attempt", "heartbeat", task=task, fence=fence + 1) == "lease_lost"
    )


@proves("MCP-TOOLS")
def test_question_is_answered_in_the_history(server: HubServer) -> None:
    task = server.submit(CreateTask("Paint it", ready=True, assignee="bob"))

    async def ask_question(client: Client) -> None:
        await call_tool(client, "claim", task=task)
        request = await call_tool(client, "ask", task=task, question="Red or blue?")
        assert request["status"] == "blocked"
        assert "warnings" not in request, "the owner is told"
        inbox = await call_tool(client, "inbox")
        assert [one["id"] for one in inbox["blocked"]] == [task]

    run_with_client(server, "bob", ask_question)
    call_once(server, "owner", "update", task=task, status="ready", progress="Blue.")

    async def read_answer(client: Client) -> None:
        inbox = await call_tool(client, "inbox")
        assert [one["id"] for one in inbox["ready"]] == [task]
        (*_, question, response) = (await call_tool(client, "read", task=task, history=5))[
            "history"
        ]
        assert question["body"]["reason"] == "Red or blue?"
        assert response["body"]["reason"] == "Blue."

    run_with_client(server, "bob", read_answer)


@proves("SEE-STATUS")
def test_status_shows_the_whole_hub_without_empty_fields(server: HubServer) -> None:
    task = server.submit(CreateTask("Held", ready=True))

    async def work_and_look(client: Client) -> Any:
        await call_tool(client, "claim", task=task)
        return await call_tool(client, "status")

    shown = run_with_client(server, "ada", work_and_look)

    held = {one["task"]: one for one in shown["working"]}
    assert (held[task]["agent"], held[task]["attempt"], held[task]["leaseValid"]) == (
        "ada",
        1,
        True,
    )
    assert task in next(one["holds"] for one in shown["agents"] if one["name"] == "ada")


@proves("MCP-TOOLS")
def test_inbox_lists_held_offered_and_reviewed_tasks(server: HubServer) -> None:
    parent = server.submit(CreateTask("Whole", ready=True))
    child = server.submit(CreateTask("Part"))
    other = server.submit(CreateTask("Part for another"))
    for task, to in ((child, "eva"), (other, "ada")):
        server.submit(RequestDelegation(task, parent, to, due_by=START + 60_000))
    server.add_agent("eva")
    finished = server.submit(CreateTask("Done soon", ready=True))

    async def work_and_read_inbox(client: Client) -> Any:
        await call_tool(client, "claim", task=parent)
        await call_tool(client, "claim", task=finished)
        await call_tool(client, "complete", task=finished)
        return await call_tool(client, "inbox")

    inbox = run_with_client(server, "eva", work_and_read_inbox)

    ids = {kind: [one["id"] for one in inbox[kind]] for kind in ("holding", "offered", "review")}
    assert ids == {"holding": [parent], "offered": [child], "review": [finished]}


@proves("MCP-TOOLS")
def test_inbox_lists_handoffs_to_the_caller(server: HubServer) -> None:
    server.add_agent("hal")
    server.add_agent("iris")
    offer: dict[str, Any] = {
        "action": "initiate",
        "to_agent": "iris",
        "context": {"summary": "half done"},
        "work_state": {"status": "in_progress", "next_step": "the other half"},
    }
    task = {"title": "Hand", "objective": "o", "success_criteria": ["c"], "priority": "normal"}

    async def hand_over(client: Client) -> None:
        for name in ("hand-1", "hand-2", "hand-3"):
            arguments = {**offer, "handoff_id": f"h-{name}", "task": {**task, "task_id": name}}
            await call_tool(client, "acp_handoff", **arguments)
        await call_tool(client, "acp_handoff", action="withdraw", handoff_id="h-hand-3")

    async def accept_and_read_inbox(client: Client) -> Any:
        await call_tool(client, "acp_handoff", action="accept", handoff_id="h-hand-1")
        return (await call_tool(client, "inbox"))["handoffs"]

    run_with_client(server, "hal", hand_over)
    proposed, accepted = run_with_client(server, "iris", accept_and_read_inbox)
    assert (proposed["handoff_id"], proposed["status"]) == ("h-hand-2", "proposed")
    assert (accepted["handoff_id"], accepted["status"]) == ("h-hand-1", "accepted")
    assert (proposed["task_id"], proposed["from_agent"]) == ("hand-2", "hal")
    assert proposed["due_by"]
    assert call_once(server, "hal", "inbox")["handoffs"] == []


@proves("MCP-EFFECT")
def test_update_that_cannot_change_the_status_is_an_error(server: HubServer) -> None:
    server.add_agent("gus")
    task = server.submit(CreateTask("Stuck", ready=True, assignee="gus"))

    async def update(client: Client, tool: str = "update", **arguments: Any) -> Any:
        response = await client.call_tool(tool, {"task": task, **arguments})
        return response.structured_content if response.is_error else None

    async def work(client: Client) -> None:
        assert await update(client, status="in-progress") == {
            "code": "invalid_transition",
            "detail": f"{task} enters in-progress only by a claim: nothing was changed",
        }
        await call_tool(client, "claim", task=task)
        for arguments in ({"status": "done"}, {"status": "backlog"}):
            assert (await update(client, **arguments))["code"] == "invalid_transition"
        assert (await update(client, status="done", progress="half")) == {
            "code": "invalid_transition",
            "detail": "there is no transition from in-progress to done: written into the work log",
        }
        assert (await update(client, "task_update", to="done"))["code"] == "invalid_transition"
        assert (await update(client))["code"] == "invalid_field"
        assert (await update(client, "task_update"))["code"] == "invalid_field"
        # The same status is no change, and no error (S-TASK).
        assert await update(client, status="in-progress") is None
        assert (
            await refusal_code(client, "complete", task=task, outcome="blocked") == "invalid_field"
        )

    run_with_client(server, "gus", work)


@proves("MCP-EFFECT")
@pytest.mark.parametrize("outcome", ["done", "partial", "needs_review"])
def test_only_its_agent_repeats_a_completion(server: HubServer, outcome: str) -> None:
    task = server.submit(CreateTask("Done by ada", ready=True))
    call_once(server, "ada", "claim", task=task)

    async def complete(client: Client) -> str:
        return await refusal_code(client, "complete", task=task, outcome=outcome)

    for _ in range(2):
        assert call_once(server, "ada", "complete", task=task, outcome=outcome) == {
            "task": task,
            "status": "review",
        }
    assert run_with_client(server, "bob", complete) == "unauthorized_agent"
    assert call_once(server, "ada", "read", task=task)["report"]["agent"] == "ada"


@proves("MCP-EFFECT")
def test_message_whose_effect_is_refused_is_an_error_and_delivered(server: HubServer) -> None:
    task = server.submit(CreateTask("Held by bob", ready=True))
    call_once(server, "bob", "claim", task=task)
    letter = {"to": ["bob"], "subject": f"[{task}] OFFERING_READY", "body_md": "Done.\n"}

    async def send(client: Client) -> types.CallToolResult:
        result = await client.call_tool("mail_send", letter)
        assert isinstance(result, types.CallToolResult)
        return result

    sent = run_with_client(server, "ada", send)

    assert sent.is_error
    assert sent.structured_content is not None
    assert sent.structured_content["effect"]["code"] == "unauthorized_agent"
    (text,) = sent.content
    assert isinstance(text, types.TextContent)
    assert text.text.startswith("unauthorized_agent: the message was taken, its effect refused: ")
    letters = call_once(server, "bob", "inbox")["letters"]
    assert sent.structured_content["id"] in [letter["id"] for letter in letters]


@proves("MCP-TOOLS")
def test_task_is_created_released_and_asked_about_while_work_goes_on(server: HubServer) -> None:
    server.add_agent("ivo")

    async def work(client: Client) -> Any:
        found = await call_tool(client, "create", title="Found", assignee="ivo", priority="high")
        assert found["status"] == "ready"
        later = await call_tool(client, "create", title="Later", ready=False, parent=found["task"])
        assert later["status"] == "backlog"
        await call_tool(client, "claim", task=found["task"])
        asked = await call_tool(client, "ask", task=found["task"], question="A or B?", go_on=True)
        assert asked["status"] == "in-progress"
        released = await call_tool(client, "release", task=found["task"], reason="not mine")
        assert released["status"] == "ready"
        return await call_tool(client, "read", task=found["task"])

    task = run_with_client(server, "ivo", work)
    assert (task["priority"], task["reservedFor"]) == ("high", "ivo")
    assert [question["text"] for question in task["questions"]] == ["A or B?"]


@proves("MCP-TOOLS")
def test_letter_is_sent_answered_and_dealt_with(server: HubServer) -> None:
    for name in ("max", "mia"):
        server.add_agent(name)
    task = server.submit(CreateTask("Talked about", aliases=("bead:talk-1",)))

    async def write(client: Client) -> Any:
        return await call_tool(client, "send", to=["mia"], subject="DONE", text="Is it?", task=task)

    async def answer(client: Client) -> Any:
        (letter,) = (await call_tool(client, "inbox"))["letters"]
        answer = await call_tool(
            client, "send", to=["max"], subject="Re", text="It is", reply_to=letter["id"]
        )
        assert (await call_tool(client, "inbox", done=[letter["id"]]))["letters"] == []
        # To say so again is a repeat.
        await call_tool(client, "inbox", done=[letter["id"]])
        assert await refusal_code(client, "inbox", done=["nobody-knows"]) == "mail_not_found"
        return letter, answer

    sent = run_with_client(server, "max", write)
    letter, answered = run_with_client(server, "mia", answer)
    assert letter["id"] == sent["id"]
    assert sent["thread"] == answered["thread"] == letter["thread"]
    assert call_once(server, "max", "read", task=task)["status"] == "backlog"
    assert (
        refusal_of_call(
            server, "max", "send", to=["mia"], subject="x", text="", task="nobody-knows"
        )
        == "task_not_found"
    )


@proves("MCP-TOOLS")
def test_inbox_lists_unassigned_claimable_tasks(server: HubServer) -> None:
    server.add_agent("fred")
    unassigned = server.submit(CreateTask("For anybody", ready=True))
    blocked = server.submit(CreateTask("After that one", ready=True))
    server.submit(LinkTask(blocked, "blocked-by", unassigned))
    server.submit(CreateTask("Another's", ready=True, assignee="zed"))

    async def claim_and_read_inbox(client: Client) -> Any:
        before_claim = [one["id"] for one in (await call_tool(client, "inbox"))["free"]]
        while (await call_tool(client, "claim"))["task"] != unassigned:
            pass
        return before_claim, [one["id"] for one in (await call_tool(client, "inbox"))["free"]]

    before, after = run_with_client(server, "fred", claim_and_read_inbox)
    assert unassigned in before
    assert blocked not in before
    assert after == []


@proves("MCP-TOOLS")
def test_many_unacked_messages_hide_no_offer(server: HubServer) -> None:
    parent, subtask = server.submit(CreateTask("Whole")), server.submit(CreateTask("Part"))
    message = PostMail(("nina",), "a", "", "UNKNOWN", ack_wanted=True, due_in_ms=1_000)
    server.submit(*(replace(message, id=f"late-{n}") for n in range(500)))
    server.submit(RequestDelegation(subtask, parent, "nina", due_by=START + 60_000))
    server.add_agent("nina")
    assert [one["id"] for one in call_once(server, "nina", "inbox")["offered"]] == [subtask]
    server.submit(MoveTask(subtask, "cancelled"))
    assert call_once(server, "nina", "inbox")["offered"] == []


@proves("MCP-TOOLS")
def test_tasks_are_paged_and_filtered(server: HubServer) -> None:
    tasks = [server.submit(CreateTask(f"Many {n}", ready=True, assignee="zoe")) for n in range(3)]

    first = call_once(server, "ada", "read", assignee="zoe", ready=True, limit=2)
    last = call_once(server, "ada", "read", assignee="zoe", limit=2, cursor=first["next"])

    assert [one["id"] for one in first["tasks"]] == [tasks[2], tasks[1]]
    assert [one["id"] for one in last["tasks"]] == [tasks[0]]
    assert "next" not in last
    assert refusal_of_call(server, "ada", "read", ready=True, status="done") == "invalid_field"


@proves("MCP-RESULTS")
def test_result_is_structured_and_the_same_as_text(server: HubServer) -> None:
    task = server.submit(CreateTask("Both", ready=True))

    result = run_with_client(server, "ada", lambda client: client.call_tool("read", {"task": task}))

    (text,) = result.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == result.structured_content
    assert result.structured_content is not None
    assert result.structured_content["title"] == "Both"
    # Empty fields are omitted: every token costs.
    assert "parent" not in result.structured_content
    assert "children" not in result.structured_content


@proves("MCP-REFUSALS")
@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_refusal_is_a_tool_error_with_code_and_detail(server: HubServer, mode: str) -> None:
    task = server.submit(CreateTask("Ada's", ready=True))
    call_once(server, "ada", "claim", task=task)

    result = run_with_client(
        server, "bob", lambda client: client.call_tool("complete", {"task": task}), mode
    )

    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["code"] == "unauthorized_agent"
    (text,) = result.content
    assert isinstance(text, types.TextContent)
    assert text.text == "unauthorized_agent: {detail}".format(**result.structured_content)


@proves("MCP-REFUSALS")
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("claim", {"task": "nobody-knows"}, "task_not_found"),
        ("claim", {"tusk": "x"}, "invalid_field"),
        ("claim", {"minutes": -1}, "invalid_field"),
        ("update", {}, "invalid_field"),
        ("complete", {"task": "x", "outcome": "perhaps"}, "invalid_field"),
        ("ask", {"task": "x", "question": ""}, "invalid_field"),
        ("send_message", {"message": "hello"}, "not_recognized"),
        ("send_message", {"message": {"hello": "there"}}, "not_recognized"),
        ("send_message", {"message": '{"hello": '}, "invalid_json"),
        ("send_message", {"message": {"protocol": "aof"}}, "invalid_envelope"),
        ("read", {"task": "../../etc/passwd"}, "invalid_id"),
        ("aof_task_update", {"taskId": "TASK-2026-02-09-999", "notes": "x"}, "task_not_found"),
        ("aof_task_update", {}, "invalid_envelope"),
    ],
)
def test_invalid_call_is_refused_with_code(
    server: HubServer, tool: str, arguments: dict[str, Any], code: str
) -> None:
    assert refusal_of_call(server, "ada", tool, **arguments) == code


@proves("MCP-REFUSALS")
@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("claim", {"minutes": -1}, "minutes"),
        ("claim", {"session": "a b"}, "session"),
        ("complete", {"outcome": "blocked"}, "blockers"),
        ("heartbeat", {}, None),
    ],
)
def test_invalid_argument_is_named_by_path(
    server: HubServer, tool: str, arguments: dict[str, Any], path: str | None
) -> None:
    filled = {"task": server.submit(CreateTask("One", ready=True)), **arguments}

    result = run_with_client(server, "ada", lambda client: client.call_tool(tool, filled))

    assert result.structured_content.get("path") == path


@proves("MCP-REFUSALS")
def test_numbers_may_be_written_as_text(server: HubServer) -> None:
    task = server.submit(CreateTask("Loose", ready=True))

    claimed = call_once(server, "ada", "claim", task=task, minutes="5")

    assert claimed["expiresAt"] == "2026-02-09T21:00:00.000Z"
    assert (
        call_once(server, "ada", "heartbeat", task=task, fence=str(claimed["fence"]))["task"]
        == task
    )
    assert refusal_of_call(server, "ada", "heartbeat", task=task, fence=99) == "lease_lost"


@proves("MCP-DIALECTS")
def test_message_of_any_dialect_is_sent_as_the_caller(server: HubServer) -> None:
    task = server.submit(CreateTask("Spoken", ready=True))
    message = {
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": task,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T20:55:00.000Z",
        "payload": {"taskId": task, "agentId": "ada", "progress": "half"},
    }

    async def send(client: Client) -> None:
        await call_tool(client, "claim", task=task)
        sent = await call_tool(client, "send_message", message=message)
        assert sent == {
            "dialect": "aof",
            "type": "status.update",
            "reply": {"taskId": task, "status": "in-progress"},
        }
        again = await call_tool(client, "send_message", message="AOF/1 " + json.dumps(message))
        assert again["repeated"] is True

    run_with_client(server, "ada", send)
    assert refusal_of_call(server, "bob", "send_message", message=message) == "identity_mismatch"


@proves("MCP-DIALECTS")
def test_dialect_tools_reply_in_the_form_of_the_dialect(server: HubServer) -> None:
    task = server.submit(CreateTask("By AOF", ready=True))
    report = {
        "taskId": task,
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "tests": {"total": 1, "passed": 1, "failed": 0},
        "notes": "fine",
    }

    async def work(client: Client) -> None:
        await call_tool(client, "claim", task=task)
        updated = await call_tool(client, "aof_task_update", taskId=task, progress="half")
        assert updated == {"taskId": task, "status": "in-progress"}
        # The session has no name by which it could be ended: it ends with its report.
        done = await call_tool(client, "aof_task_complete", **report)
        assert done == {"taskId": task, "status": "review"}
        assert (await call_tool(client, "read", task=task))["status"] == "review"
        assert await refusal_code(client, "aof_task_complete", **report | {"agentId": "bob"}) == (
            "identity_mismatch"
        )

    run_with_client(server, "ada", work)


@proves("MCP-REPORT-NOW", "AOF-SESSION-END")
def test_named_session_can_be_ended(server: HubServer) -> None:
    task = server.submit(CreateTask("By AOF", ready=True))
    tests = {"total": 0, "passed": 0, "failed": 0}
    report = {"taskId": task, "outcome": "done", "summaryRef": "o", "tests": tests, "notes": ""}

    async def work(client: Client) -> None:
        await call_tool(client, "claim", task=task, session="s-1")
        assert (await call_tool(client, "aof_task_complete", **report))["status"] == "in-progress"
        ended = await call_tool(client, "session_end", sessionId="s-1")
        assert ended["tasks"] == [{"taskId": task, "status": "review"}]
        assert await refusal_code(client, "session_end") == "unauthorized_agent"

    run_with_client(server, "ada", work)


@proves("MCP-REPORT-NOW")
@pytest.mark.parametrize(("session", "status"), [("", "review"), ("s-1", "in-progress")])
def test_report_and_its_repeat_reply_with_task_status(
    server: HubServer, session: str, status: str
) -> None:
    task = server.submit(CreateTask("By AOF", ready=True))
    report: dict[str, Any] = {
        "protocol": "aof",
        "version": 1,
        "type": "completion.report",
        "taskId": task,
        "fromAgent": "ada",
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T21:00:00.000Z",
        "payload": {
            "outcome": "needs_review",
            "summaryRef": "outputs/summary.md",
            "tests": {"total": 0, "passed": 0, "failed": 0},
            "notes": "",
        },
    }

    async def send(client: Client) -> None:
        await call_tool(client, "claim", task=task, session=session)
        for _ in range(2):
            sent = await call_tool(client, "send_message", message=report)
            assert sent["reply"]["status"] == status
            assert (await call_tool(client, "read", task=task))["status"] == status

    run_with_client(server, "ada", send)


@proves("MCP-DIALECTS")
def test_operations_with_a_summary_are_tools_with_schema() -> None:
    tools = build_tools(build_dialects())

    operations: list[Operation] = [
        operation for dialect in build_dialects() for operation in dialect.operations
    ]
    by_tool_name = {
        operation.name.replace(".", "_"): operation for operation in operations if operation.summary
    }
    assert {"aof_task_complete", "aof_task_update", "mail_send"} <= by_tool_name.keys()
    for name, operation in by_tool_name.items():
        assert tools[name].description == operation.summary
        assert tools[name].schema["type"] == "object"
        assert set(tools[name].schema.get("required", ())) <= {
            field.encode_name for field in msgspec.structs.fields(operation.input)
        }


_DAILY_TOOLS = [
    *("claim", "create", "update", "complete", "release", "ask", "read", "status", "inbox", "send")
]


@proves("MCP-SIZE")
def test_tool_list_is_small(server: HubServer) -> None:
    listed = run_with_client(server, "ada", lambda client: client.list_tools()).tools

    assert [tool.name for tool in listed] == _DAILY_TOOLS
    assert _size(listed) <= 6_000
    for tool in listed:
        assert tool.description
        for name, argument in tool.input_schema["properties"].items():
            assert argument.get("description"), f"{tool.name}: {name} is described"


@proves("MCP-SIZE")
@pytest.mark.parametrize("dialect", build_dialects(), ids=lambda dialect: dialect.name)
def test_dialect_adds_few_tools(server: HubServer, dialect: Dialect) -> None:
    server.add_agent("talker")
    server.submit(RegisterAgent("talker", speaks=(dialect.name,)))
    listed = run_with_client(server, "talker", lambda client: client.list_tools()).tools

    names = [tool.name for tool in listed]
    added = {one.name.replace(".", "_") for one in dialect.operations if one.summary}
    assert set(names) == {*_DAILY_TOOLS, "send_message", *added}
    assert _size([tool for tool in listed if tool.name not in _DAILY_TOOLS]) < 7 * 1024


@proves("MCP-DIALECTS")
def test_duplicate_tool_name_is_refused() -> None:
    with pytest.raises(ValueError, match="two tools have one name"):
        build_tools(build_dialects(), (*fixtures.TOOLS, fixtures.TOOLS[0]))


class _Part(msgspec.Struct):
    title: str


class _AllOptional(msgspec.Struct):
    after: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] = 0
    names: tuple[str, ...] = ()
    limit: Annotated[int, msgspec.Meta(le=500)] = 50
    default: Any = None


class _Nested(msgspec.Struct):
    """A description, which is left out."""

    part: _Part
    more: list[_Part]


@proves("MCP-SIZE")
def test_schema_omits_defaults_and_titles() -> None:
    schema = argument_schema(_AllOptional)
    assert schema["properties"] == {
        "after": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "maximum": 500, "default": 50},
        "default": {},
    }
    assert "required" not in schema


@proves("MCP-SIZE")
def test_schema_has_required_fields_and_definitions() -> None:
    part = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}

    assert argument_schema(_Nested) == {
        "type": "object",
        "properties": {
            "part": {"$ref": "#/$defs/_Part"},
            "more": {"type": "array", "items": {"$ref": "#/$defs/_Part"}},
        },
        "required": ["part", "more"],
        "$defs": {"_Part": part},
    }


@proves("REDACT-TOLD")
@pytest.mark.parametrize(
    ("tool", "field"), [("update", "progress"), ("complete", "notes"), ("ask", "question")]
)
def test_masked_secret_is_reported(server: HubServer, tool: str, field: str) -> None:
    task = server.submit(CreateTask("Mend it", ready=True))
    call_once(server, "ada", "claim", task=task)
    assert "warnings" not in call_once(server, "ada", "update", task=task, progress="half")
    warning, *_ = call_once(server, "ada", tool, task=task, **{field: "ghp_" + "a1B2" * 9})[
        "warnings"
    ]
    assert warning.startswith("a secret was masked: ")
    assert warning.endswith(" (github_token)")
