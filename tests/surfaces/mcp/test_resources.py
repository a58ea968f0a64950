"""MCP resources: tasks, histories, threads, handoffs."""

import json

import pytest
from mcp import types
from mcp.client import Client

from dragoman.core.handoff.state import ProposeHandoff
from dragoman.core.task_state import AliasTask, CreateTask
from tests.engine.handoffs import package
from tests.engine.lab import ALICE
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.mcp.clients import PROTOCOL_VERSIONS, protocol_error, run_with_client
from tests.surfaces.mcp.mcp_hub import mount_mcp

pytestmark = proves("MCP-RESOURCES")


async def _read_text(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.mime_type == "application/json"
    return content.text


@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_task_is_read_by_any_of_its_names(server: HubServer, mode: str) -> None:
    task = server.submit(CreateTask("Read me", body="All of it."))
    server.submit(AliasTask(task, f"gh:{mode}-1"))

    async def read(client: Client) -> None:
        for name in (task, f"gh:{mode}-1", f"gh%3A{mode}-1"):
            resource = json.loads(await _read_text(client, f"dragoman://tasks/{name}"))
            assert (resource["id"], resource["body"]) == (task, "All of it.")
        history = json.loads(await _read_text(client, f"dragoman://tasks/{task}/history"))
        assert [entry["type"] for entry in history] == ["task.created", "task.aliased"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == [
            "dragoman://tasks/{task}",
            "dragoman://tasks/{task}/history",
            "dragoman://threads/{thread}",
            "dragoman://handoffs/{handoff}",
        ]

    run_with_client(server, "olga", read, mode)


def test_newest_tasks_are_listed() -> None:
    with serving(mount_mcp(HubServer())) as server:
        tasks = [server.submit(CreateTask(f"Task {n}")) for n in range(60)]

        async def read(client: Client) -> types.ListResourcesResult:
            return await client.list_resources()

        page = run_with_client(server, "owner", read)

    assert page.next_cursor is None
    assert [resource.name for resource in page.resources] == tasks[:9:-1]
    assert page.resources[0].title == "Task 59"


@proves("ACP-READ")
def test_handoff_is_read_with_its_diagnosis(server: HubServer) -> None:
    server.submit(CreateTask("Fix it", id="t1", ready=True))
    server.submit(ProposeHandoff("t1", "bob", package("t1"), id="h1"), actor=ALICE)

    async def read(client: Client) -> None:
        resource = json.loads(await _read_text(client, "dragoman://handoffs/h1"))
        assert (resource["status"], resource["to_agent"]) == ("proposed", "bob")
        assert resource["diagnosis"]["steps"][0]["action"] == "accept"

    run_with_client(server, "olga", read)
    for uri in ("dragoman://handoffs/h2", "dragoman://handoffs/%20"):
        error = protocol_error(server, "ada", lambda client, uri=uri: client.read_resource(uri))
        assert (error.code, error.data) == (types.INVALID_PARAMS, {"uri": uri})


@proves("MCP-REFUSALS")
@pytest.mark.parametrize(
    "uri", ["dragoman://tasks/nobody-knows", "dragoman://tasks/a/b/c", "file:///etc/passwd"]
)
def test_missing_resource_is_an_error_with_its_uri(server: HubServer, uri: str) -> None:
    error = protocol_error(server, "ada", lambda client: client.read_resource(uri))

    assert (error.code, error.data) == (types.INVALID_PARAMS, {"uri": uri})
