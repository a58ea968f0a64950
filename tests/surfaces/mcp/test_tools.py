"""What an agent does with the tools, over streamable HTTP and with the SDK's own client."""

import asyncio
import json
from typing import Annotated, Any

import msgspec
import pytest
from mcp import types
from mcp.client import Client
from msgspec.structs import replace

from dragoman.bootstrap import dialects
from dragoman.config import NotifySettings
from dragoman.core.commands import CreateTask, LinkTask, MoveTask, PostMail, RequestDelegation
from dragoman.engine.operation import Operation
from dragoman.engine.reads.ask import entries
from dragoman.ledger.entry import read_line
from dragoman.services.costs import cost_of_attempt
from dragoman.surfaces.mcp.profiles import CORE
from dragoman.surfaces.mcp.tool import schema_of
from dragoman.surfaces.mcp.tools import table
from tests.requirements import proves
from tests.surfaces.http.house import START, House, serving
from tests.surfaces.mcp import fixtures
from tests.surfaces.mcp.clients import ERAS, once, refusal, refused, talk, use
from tests.surfaces.mcp.stand import furnish


def _size(tools: list[types.Tool]) -> int:
    listed = types.ListToolsResult(tools=tools)
    return len(listed.model_dump_json(by_alias=True, exclude_none=True))


@proves("MCP-TOOLS")
@pytest.mark.parametrize("mode", ERAS)
def test_a_task_goes_from_claim_to_complete(house: House, mode: str) -> None:
    task = house.do(CreateTask("Mend it", body="The roof leaks.", ready=True))

    async def work(client: Client) -> None:
        assert client.protocol_version == ERAS[mode]
        assert client.instructions is not None
        assert "claim" in client.instructions
        claimed = await use(client, "claim", task=task, minutes=20)
        assert claimed["about"]["body"] == "The roof leaks."
        assert claimed["expiresAt"] == "2026-02-09T21:15:00.000Z"
        fence = claimed["fence"]
        updated = await use(client, "update", task=task, progress="half", fence=fence)
        assert updated == {
            "task": task,
            "status": "in-progress",
            "expiresAt": "2026-02-09T21:15:00.000Z",
        }
        beaten = await use(client, "heartbeat", task=task, fence=fence)
        assert (beaten["attempt"], beaten["fence"]) == (1, fence)
        done = await use(client, "complete", task=task, notes="dry", details={"rain": 3})
        assert done == {"task": task, "status": "review"}

    talk(house, "ada", work, mode)

    shown = once(house, "ada", "read", task=task, history=2)
    assert shown["report"]["notes"] == "dry"
    assert [entry["type"] for entry in shown["history"]] == ["task.reported", "task.transitioned"]


@proves("MCP-TOOLS")
def test_callers_at_the_same_time_get_different_tasks(house: House) -> None:
    house.welcome("zed")
    for number in range(8):
        house.do(CreateTask(f"Race {number}", ready=True, assignee="zed"))

    async def race(client: Client) -> list[Any]:
        return await asyncio.gather(*(use(client, "claim") for _ in range(8)))

    assert len({claimed["task"] for claimed in talk(house, "zed", race)}) == 8


@proves("MCP-TOOLS", "TASK-OBSTACLE")
def test_whoever_asks_where_people_are_told_is_warned_of_nothing() -> None:
    house = House()
    told = NotifySettings(command=("tell-them",))
    house.door = replace(house.door, settings=replace(house.door.settings, notify=told))
    with serving(furnish(house)):
        house.welcome("ada")
        task = house.do(CreateTask("Paint it", ready=True))
        once(house, "ada", "claim", task=task)
        asked = once(house, "ada", "ask", task=task, question="Red or blue?")
        read = once(house, "ada", "read", task=task)
        inbox = once(house, "ada", "inbox")
    assert asked == {"task": task, "status": "blocked"}
    assert read["obstacle"] == "Red or blue?"
    assert [one["obstacle"] for one in inbox["blocked"]] == ["Red or blue?"]
    assert told.tells("blocked")
    assert not replace(told, statuses=("done",)).tells("blocked")


@proves("MCP-TOOLS", "REPORT-COST")
@pytest.mark.parametrize("outcome", ["done", "failed"])
def test_a_report_tells_what_the_work_has_cost(house: House, outcome: str) -> None:
    task = house.do(CreateTask("Dear", ready=True))
    once(house, "ada", "claim", task=task)
    once(house, "ada", "complete", task=task, outcome=outcome, details={"cost": 0.3})
    assert cost_of_attempt(house.store, task, 1) == 0.3


@proves("MCP-IDENTITY")
def test_entries_name_the_agent_and_the_door(house: House) -> None:
    task = house.do(CreateTask("Signed", ready=True))

    once(house, "ada", "claim", task=task)

    last = [read_line(entry.line) for entry in entries(house.store)][-1]
    assert (last.event, last.actor, last.via) == ("task.claimed", "agent:ada", "mcp")


@proves("MCP-IDENTITY")
def test_the_token_of_an_attempt_speaks_for_its_task_only(house: House) -> None:
    task, other = (house.do(CreateTask(title, ready=True)) for title in ("Mine", "Not mine"))
    fence = once(house, "ada", "claim", task=task)["fence"]
    house.tokens["attempt"] = house.identity.attempt_token("ada", task, fence, 60_000)

    assert once(house, "attempt", "update", task=task, progress="half")["status"] == "in-progress"
    assert refused(house, "attempt", "claim", task=other) == "not_authorized"
    assert refused(house, "attempt", "claim") == "not_authorized"
    assert refused(house, "attempt", "heartbeat", task=task, fence=fence + 1) == "lease_lost"


@proves("MCP-TOOLS")
def test_whoever_needs_a_person_asks_and_finds_the_answer_in_the_history(house: House) -> None:
    task = house.do(CreateTask("Paint it", ready=True, assignee="bob"))

    async def stuck(client: Client) -> None:
        await use(client, "claim", task=task)
        asked = await use(client, "ask", task=task, question="Red or blue?")
        assert asked["status"] == "blocked"
        (warning,) = asked["warnings"]
        assert warning.startswith("nobody is told of the question"), "none is set up to be told"
        mine = await use(client, "inbox")
        assert [one["id"] for one in mine["blocked"]] == [task]

    talk(house, "bob", stuck)
    once(house, "owner", "update", task=task, status="ready", notes="Blue.")

    async def answered(client: Client) -> None:
        mine = await use(client, "inbox")
        assert [one["id"] for one in mine["ready"]] == [task]
        (*_, question, answer) = (await use(client, "read", task=task, history=5))["history"]
        assert question["body"]["reason"] == "Red or blue?"
        assert answer["body"]["reason"] == "Blue."

    talk(house, "bob", answered)


@proves("MCP-TOOLS")
def test_the_inbox_has_what_is_held_offered_and_in_review(house: House) -> None:
    parent = house.do(CreateTask("Whole", ready=True))
    child = house.do(CreateTask("Part"))
    other = house.do(CreateTask("Part for another"))
    for task, to in ((child, "eva"), (other, "ada")):
        house.do(RequestDelegation(task, parent, to, due_by=START + 60_000))
    house.welcome("eva")
    finished = house.do(CreateTask("Done soon", ready=True))

    async def look(client: Client) -> Any:
        await use(client, "claim", task=parent)
        await use(client, "claim", task=finished)
        await use(client, "complete", task=finished)
        return await use(client, "inbox")

    inbox = talk(house, "eva", look)

    held = {kind: [one["id"] for one in inbox[kind]] for kind in ("holding", "offered", "review")}
    assert held == {"holding": [parent], "offered": [child], "review": [finished]}


@proves("MCP-TOOLS")
def test_the_inbox_has_the_handoffs_to_whoever_looks(house: House) -> None:
    house.welcome("hal")
    house.welcome("iris")
    offer: dict[str, Any] = {
        "action": "initiate",
        "to_agent": "iris",
        "context": {"summary": "half done"},
        "work_state": {"status": "in_progress", "next_step": "the other half"},
    }
    task = {"title": "Hand", "objective": "o", "success_criteria": ["c"], "priority": "normal"}

    async def hand_over(client: Client) -> None:
        for name in ("hand-1", "hand-2", "hand-3"):
            said = {**offer, "handoff_id": f"h-{name}", "task": {**task, "task_id": name}}
            await use(client, "acp_handoff", **said)
        await use(client, "acp_handoff", action="withdraw", handoff_id="h-hand-3")

    async def look(client: Client) -> Any:
        await use(client, "acp_handoff", action="accept", handoff_id="h-hand-1")
        return (await use(client, "inbox"))["handoffs"]

    talk(house, "hal", hand_over)
    proposed, accepted = talk(house, "iris", look)
    assert (proposed["handoff_id"], proposed["status"]) == ("h-hand-2", "proposed")
    assert (accepted["handoff_id"], accepted["status"]) == ("h-hand-1", "accepted")
    assert (proposed["task_id"], proposed["from_agent"]) == ("hand-2", "hal")
    assert proposed["due_by"]
    assert once(house, "hal", "inbox")["handoffs"] == []


@proves("MCP-TOOLS")
def test_a_status_that_cannot_be_and_a_block_by_nothing_are_told(house: House) -> None:
    house.welcome("gus")
    task = house.do(CreateTask("Stuck", ready=True, assignee="gus"))

    async def work(client: Client) -> None:
        early = await use(client, "update", task=task, status="in-progress")
        assert early["warnings"] == [
            f"{task} enters in-progress only by a claim: nothing was changed"
        ]
        await use(client, "claim", task=task)
        told = await use(client, "update", task=task, status="done")
        assert told["status"] == "in-progress"
        assert told["warnings"] == ["there is no way from in-progress to done: nothing was changed"]
        assert await refusal(client, "complete", task=task, outcome="blocked") == "invalid_field"

    talk(house, "gus", work)


@proves("MCP-TOOLS")
def test_the_inbox_has_what_anybody_may_claim(house: House) -> None:
    house.welcome("fred")
    free = house.do(CreateTask("For anybody", ready=True))
    waits = house.do(CreateTask("After that one", ready=True))
    house.do(LinkTask(waits, "blocked-by", free))
    house.do(CreateTask("Another's", ready=True, assignee="zed"))

    async def look(client: Client) -> Any:
        seen = [one["id"] for one in (await use(client, "inbox"))["free"]]
        while (await use(client, "claim"))["task"] != free:
            pass
        return seen, [one["id"] for one in (await use(client, "inbox"))["free"]]

    before, after = talk(house, "fred", look)
    assert free in before
    assert waits not in before
    assert after == []


@proves("MCP-TOOLS")
def test_no_number_of_letters_that_want_an_ack_hides_an_offer(house: House) -> None:
    parent, mine = house.do(CreateTask("Whole")), house.do(CreateTask("Part"))
    wanted = PostMail(("nina",), "a", "", "UNKNOWN", ack_wanted=True, due_in_ms=1_000)
    house.do(*(replace(wanted, id=f"late-{n}") for n in range(500)))
    house.do(RequestDelegation(mine, parent, "nina", due_by=START + 60_000))
    house.welcome("nina")
    assert [one["id"] for one in once(house, "nina", "inbox")["offered"]] == [mine]
    house.do(MoveTask(mine, "cancelled"))
    assert once(house, "nina", "inbox")["offered"] == []


@proves("MCP-TOOLS")
def test_lists_have_pages_and_filters(house: House) -> None:
    tasks = [house.do(CreateTask(f"Many {n}", ready=True, assignee="zoe")) for n in range(3)]

    first = once(house, "ada", "read", assignee="zoe", ready=True, limit=2)
    last = once(house, "ada", "read", assignee="zoe", limit=2, cursor=first["next"])

    assert [one["id"] for one in first["tasks"]] == [tasks[2], tasks[1]]
    assert [one["id"] for one in last["tasks"]] == [tasks[0]]
    assert "next" not in last
    assert refused(house, "ada", "read", ready=True, status="done") == "invalid_field"


@proves("MCP-RESULTS")
def test_an_answer_is_structured_and_the_same_as_text(house: House) -> None:
    task = house.do(CreateTask("Both", ready=True))

    answer = talk(house, "ada", lambda client: client.call_tool("read", {"task": task}))

    (text,) = answer.content
    assert isinstance(text, types.TextContent)
    assert json.loads(text.text) == answer.structured_content
    assert answer.structured_content is not None
    assert answer.structured_content["title"] == "Both"
    # What there is none of is not there: every word costs.
    assert "parent" not in answer.structured_content
    assert "children" not in answer.structured_content


@proves("MCP-REFUSALS")
@pytest.mark.parametrize("mode", ERAS)
def test_a_refusal_is_an_error_of_the_tool_with_code_and_detail(house: House, mode: str) -> None:
    task = house.do(CreateTask("Ada's", ready=True))
    once(house, "ada", "claim", task=task)

    answer = talk(house, "bob", lambda client: client.call_tool("complete", {"task": task}), mode)

    assert answer.is_error
    assert answer.structured_content is not None
    assert answer.structured_content["code"] == "unauthorized_agent"
    (text,) = answer.content
    assert isinstance(text, types.TextContent)
    assert text.text == "unauthorized_agent: {detail}".format(**answer.structured_content)


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
        ("send", {"message": "hello"}, "not_recognized"),
        ("send", {"message": {"hello": "there"}}, "not_recognized"),
        ("send", {"message": '{"hello": '}, "invalid_json"),
        ("send", {"message": {"protocol": "aof"}}, "invalid_envelope"),
        ("read", {"task": "../../etc/passwd"}, "invalid_id"),
        ("aof_task_update", {"taskId": "TASK-2026-02-09-999", "notes": "x"}, "task_not_found"),
        ("aof_task_update", {}, "invalid_envelope"),
    ],
)
def test_what_cannot_be_done_is_told_by_its_code(
    house: House, tool: str, arguments: dict[str, Any], code: str
) -> None:
    assert refused(house, "ada", tool, **arguments) == code


@proves("MCP-REFUSALS")
@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("claim", {"minutes": -1}, "minutes"),
        ("claim", {"session": "a b"}, "session"),
        ("complete", {"outcome": "blocked"}, "blockers"),
        ("heartbeat", {}, None),
        ("heartbeat", {"task": "nobody-has-it"}, "task"),
        ("claim", {"task": "nobody-has-it"}, "task"),
        ("claim", {"task": "a b"}, "task"),
        ("read", {"task": "nobody-has-it"}, "task"),
    ],
)
def test_the_argument_that_is_wrong_is_told(
    house: House, tool: str, arguments: dict[str, Any], path: str | None
) -> None:
    given = {"task": house.do(CreateTask("One", ready=True)), **arguments}

    answer = talk(house, "ada", lambda client: client.call_tool(tool, given))

    assert answer.structured_content.get("path") == path


@proves("MCP-REFUSALS")
def test_numbers_may_be_written_as_text(house: House) -> None:
    task = house.do(CreateTask("Loose", ready=True))

    claimed = once(house, "ada", "claim", task=task, minutes="5")

    assert claimed["expiresAt"] == "2026-02-09T21:00:00.000Z"
    assert once(house, "ada", "heartbeat", task=task, fence=str(claimed["fence"]))["task"] == task
    assert refused(house, "ada", "heartbeat", task=task, fence=99) == "lease_lost"


@proves("MCP-DIALECTS")
def test_a_message_of_any_dialect_is_sent_as_whoever_calls(house: House) -> None:
    task = house.do(CreateTask("Spoken", ready=True))
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

    async def speak(client: Client) -> None:
        await use(client, "claim", task=task)
        sent = await use(client, "send", message=message)
        assert sent == {
            "dialect": "aof",
            "type": "status.update",
            "reply": {"taskId": task, "status": "in-progress"},
        }
        again = await use(client, "send", message="AOF/1 " + json.dumps(message))
        assert again["repeated"] is True

    talk(house, "ada", speak)
    assert refused(house, "bob", "send", message=message) == "identity_mismatch"


@proves("MCP-DIALECTS")
def test_the_tools_of_a_dialect_answer_in_its_own_form(house: House) -> None:
    task = house.do(CreateTask("By AOF", ready=True))
    report = {
        "taskId": task,
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "tests": {"total": 1, "passed": 1, "failed": 0},
        "notes": "fine",
    }

    async def work(client: Client) -> None:
        await use(client, "claim", task=task)
        going = await use(client, "aof_task_update", taskId=task, progress="half")
        assert going == {"taskId": task, "status": "in-progress"}
        # The stay has no name by which anybody could end it: it ends with its report.
        done = await use(client, "aof_task_complete", **report)
        assert done == {"taskId": task, "status": "review"}
        assert (await use(client, "read", task=task))["status"] == "review"
        assert await refusal(client, "aof_task_complete", **report | {"agentId": "bob"}) == (
            "identity_mismatch"
        )

    talk(house, "ada", work)


@proves("MCP-REPORT-NOW", "AOF-SESSION-END")
def test_who_names_its_stay_can_end_it(house: House) -> None:
    task = house.do(CreateTask("By AOF", ready=True))
    tests = {"total": 0, "passed": 0, "failed": 0}
    report = {"taskId": task, "outcome": "done", "summaryRef": "o", "tests": tests, "notes": ""}

    async def work(client: Client) -> None:
        await use(client, "claim", task=task, session="s-1")
        assert (await use(client, "aof_task_complete", **report))["status"] == "in-progress"
        ended = await use(client, "session_end", sessionId="s-1")
        assert ended["tasks"] == [{"taskId": task, "status": "review"}]
        assert await refusal(client, "session_end") == "unauthorized_agent"

    talk(house, "ada", work)


@proves("MCP-REPORT-NOW")
@pytest.mark.parametrize(("session", "status"), [("", "review"), ("s-1", "in-progress")])
def test_a_report_answers_with_where_the_task_stands_and_a_repeat_answers_alike(
    house: House, session: str, status: str
) -> None:
    task = house.do(CreateTask("By AOF", ready=True))
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

    async def speak(client: Client) -> None:
        await use(client, "claim", task=task, session=session)
        for _ in range(2):
            sent = await use(client, "send", message=report)
            assert sent["reply"]["status"] == status
            assert (await use(client, "read", task=task))["status"] == status

    talk(house, "ada", speak)


@proves("MCP-DIALECTS")
def test_every_operation_that_says_what_it_is_for_is_a_tool_with_its_shape() -> None:
    tools = table(dialects())

    operations: list[Operation] = [one for dialect in dialects() for one in dialect.operations]
    offered = {one.name.replace(".", "_"): one for one in operations if one.summary}
    assert {"aof_task_complete", "aof_task_update", "mail_send"} <= offered.keys()
    for name, operation in offered.items():
        assert tools[name].about == operation.summary
        assert tools[name].schema["type"] == "object"
        assert set(tools[name].schema.get("required", ())) <= {
            field.encode_name for field in msgspec.structs.fields(operation.shape)
        }


@proves("MCP-SIZE")
def test_the_tool_list_is_small(house: House) -> None:
    listed = talk(house, "ada", lambda client: client.list_tools()).tools

    by_group: dict[str, list[types.Tool]] = {}
    tools = table(dialects())
    for one in listed:
        assert one.description
        by_group.setdefault(tools[one.name].group, []).append(one)
    core = by_group.pop(CORE)
    assert _size(core) < 10_000
    assert {one.name for one in core} == {
        "claim",
        "update",
        "complete",
        "heartbeat",
        "send",
        "inbox",
        "ask",
        "read",
    }
    assert by_group
    assert all(_size(of_a_dialect) < 6_000 for of_a_dialect in by_group.values())


@proves("MCP-DIALECTS")
def test_no_two_tools_may_share_a_name() -> None:
    with pytest.raises(ValueError, match="two tools have one name"):
        table(dialects(), (*fixtures.TOOLS, fixtures.TOOLS[0]))


class _Part(msgspec.Struct):
    title: str


class _Empty(msgspec.Struct):
    after: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] = 0
    names: tuple[str, ...] = ()
    limit: Annotated[int, msgspec.Meta(le=500)] = 50
    default: Any = None


class _Whole(msgspec.Struct):
    """Something."""

    part: _Part
    more: list[_Part]


@proves("MCP-SIZE")
def test_a_schema_says_nothing_that_goes_without_saying() -> None:
    schema = schema_of(_Empty)
    assert schema["properties"] == {
        "after": {"type": "integer", "minimum": 0},
        "names": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "maximum": 500, "default": 50},
        "default": {},
    }
    assert "required" not in schema


@proves("MCP-SIZE")
def test_a_schema_says_what_is_needed_and_no_more() -> None:
    part = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}

    assert schema_of(_Whole) == {
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
def test_who_tells_a_secret_by_a_tool_is_told_so(house: House, tool: str, field: str) -> None:
    task = house.do(CreateTask("Mend it", ready=True))
    once(house, "ada", "claim", task=task)
    assert "warnings" not in once(house, "ada", "update", task=task, progress="half")
    warning, *_ = once(house, "ada", tool, task=task, **{field: "ghp_" + "a1B2" * 9})["warnings"]
    assert warning.startswith("a secret was masked: ")
    assert warning.endswith(" (github_token)")
