"""Tasks and their histories as resources."""

import json

import pytest
from mcp import types
from mcp.client import Client

from dragoman.core.actors import Actor
from dragoman.core.commands import AliasTask, CreateTask, DraftHandoff, ProposeHandoff
from tests.engine.handoffs import package
from tests.engine.lab import ALICE
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.mcp.clients import ERAS, fault, talk
from tests.surfaces.mcp.stand import furnish

pytestmark = proves("MCP-RESOURCES")


async def _text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.mime_type == "application/json"
    return content.text


@pytest.mark.parametrize("mode", ERAS)
def test_a_task_is_read_by_any_of_its_names(house: House, mode: str) -> None:
    task = house.do(CreateTask("Read me", body="All of it."))
    house.do(AliasTask(task, f"gh:{mode}-1"))

    async def read(client: Client) -> None:
        for name in (task, f"gh:{mode}-1", f"gh%3A{mode}-1"):
            shown = json.loads(await _text(client, f"dragoman://tasks/{name}"))
            assert (shown["id"], shown["body"]) == (task, "All of it.")
        history = json.loads(await _text(client, f"dragoman://tasks/{task}/history"))
        assert [entry["type"] for entry in history] == ["task.created", "task.aliased"]
        found = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in found] == [
            "dragoman://tasks/{task}",
            "dragoman://tasks/{task}/history",
            "dragoman://threads/{thread}",
            "dragoman://handoffs/{handoff}",
        ]

    talk(house, "olga", read, mode)


def test_all_tasks_are_listed_page_by_page_and_what_is_there_once_on_the_last() -> None:
    with serving(furnish(House(), with_fixtures=True)) as house:
        tasks = [house.do(CreateTask(f"Task {n}")) for n in range(120)]

        async def read(client: Client) -> list[list[types.Resource]]:
            pages, cursor = list[list[types.Resource]](), None
            while True:
                page = await client.list_resources(cursor=cursor)
                pages.append(page.resources)
                cursor = page.next_cursor
                if cursor is None:
                    return pages

        pages = talk(house, "owner", read)

    assert [len(page) for page in pages] == [50, 50, 23]
    listed = [one for page in pages for one in page]
    assert [one.name for one in listed[:120]] == tasks[::-1]
    assert listed[0].title == "Task 119"
    assert [one.uri for one in listed[120:]] == [
        "test://static-text",
        "test://static-binary",
        "test://watched-resource",
    ]


@proves("ACP-READ")
def test_a_handoff_is_read_with_what_it_waits_for(house: House) -> None:
    house.do(CreateTask("Fix it", id="t1", ready=True))
    house.do(ProposeHandoff("t1", "bob", package("t1"), id="h1"), actor=ALICE)

    async def read(client: Client) -> None:
        shown = json.loads(await _text(client, "dragoman://handoffs/h1"))
        assert (shown["status"], shown["to_agent"]) == ("proposed", "bob")
        assert shown["diagnosis"]["steps"][0]["action"] == "accept"

    async def read_draft(client: Client) -> None:
        shown = json.loads(await _text(client, "dragoman://handoffs/d1"))
        assert "cannot be offered" in shown["diagnosis"]["summary"]

    talk(house, "olga", read)
    house.do(DraftHandoff({}, "d1", "bob"), actor=Actor("agent", "ada"))
    talk(house, "ada", read_draft)
    for uri in ("dragoman://handoffs/h2", "dragoman://handoffs/%20"):
        error = fault(house, "ada", lambda client, uri=uri: client.read_resource(uri))
        assert (error.code, error.data) == (types.INVALID_PARAMS, {"uri": uri})


@proves("MCP-REFUSALS")
@pytest.mark.parametrize(
    "uri", ["dragoman://tasks/nobody-knows", "dragoman://tasks/a/b/c", "file:///etc/passwd"]
)
def test_what_is_not_there_is_an_error_that_names_the_address(house: House, uri: str) -> None:
    error = fault(house, "ada", lambda client: client.read_resource(uri))

    assert (error.code, error.data) == (types.INVALID_PARAMS, {"uri": uri})


@proves("MCP-REFUSALS")
@pytest.mark.parametrize("cursor", ["", "x", "0", "9:1", "0:-1", "0:1:2", "٣:1"])
def test_a_strange_cursor_is_refused(house: House, cursor: str) -> None:
    error = fault(house, "ada", lambda client: client.list_resources(cursor=cursor))

    assert error.code == types.INVALID_PARAMS
    assert "cursor" in error.message
