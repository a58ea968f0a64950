"""Resources of the MCP surface: tasks, histories, threads and handoffs by URI."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from mcp import types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.handoff_diagnosis import diagnose_handoff
from dragoman.engine.queries.handoffs import find_handoff
from dragoman.engine.queries.mail import find_thread, last_in_thread
from dragoman.engine.queries.tasks import TaskFilter, page_of_tasks
from dragoman.engine.queries.visibility import visible_to
from dragoman.engine.schemas.handoffs import handoff_detail
from dragoman.surfaces.mcp.context import HubContext
from dragoman.surfaces.mcp.tools import full_letter, read_last_entries, task_brief

JSON_TYPE = "application/json"
TASK = "dragoman://tasks/{task}"
HISTORY = "dragoman://tasks/{task}/history"
THREAD = "dragoman://threads/{thread}"
HANDOFF = "dragoman://handoffs/{handoff}"

_LIST_LIMIT = 50
_HISTORY_LIMIT = 1_000
_PARAMETER = re.compile(r"\\\{(\w+)\\\}")

UriParameters = Mapping[str, str]


class ResourceKind(Struct, frozen=True):
    """A kind of resource: all whose URIs follow one template."""

    template: str
    name: str
    description: str
    read: Callable[[HubContext, UriParameters], Any]
    """Returns the content, which is sent as JSON."""

    def match(self, uri: str) -> UriParameters | None:
        """Return the parameters in a URI; None if it is of another kind."""
        pattern = _PARAMETER.sub(r"(?P<\1>[^/?#]+)", re.escape(self.template))
        found = re.fullmatch(pattern, uri)
        return found and {key: unquote(part) for key, part in found.groupdict().items()}


def list_resources(context: HubContext) -> types.ListResourcesResult:
    """List the newest tasks; all others are found by their template."""
    page = page_of_tasks(context.hub.store, TaskFilter(limit=_LIST_LIMIT), context.now)
    rows = [
        types.Resource(
            uri=TASK.format(task=quote(view.task.id, safe="")),
            name=view.task.id,
            title=view.task.title,
            description=view.task.status,
            mime_type=JSON_TYPE,
        )
        for view in page.tasks
    ]
    return types.ListResourcesResult(resources=rows)


def list_templates() -> types.ListResourceTemplatesResult:
    """List every template."""
    found = [
        types.ResourceTemplate(
            uri_template=kind.template,
            name=kind.name,
            description=kind.description,
            mime_type=JSON_TYPE,
        )
        for kind in _KINDS
    ]
    return types.ListResourceTemplatesResult(resource_templates=found)


def read_resource(context: HubContext, uri: str) -> types.ReadResourceResult:
    """Read the resource at a URI; MCPError if there is none."""
    for kind in _KINDS:
        parameters = kind.match(uri)
        if parameters is None:
            continue
        try:
            text = msgspec.json.encode(kind.read(context, parameters)).decode()
        except Refused as refused:
            raise _not_found(uri, f"{refused}") from refused
        content = types.TextResourceContents(uri=uri, mime_type=JSON_TYPE, text=text)
        return types.ReadResourceResult(contents=[content])
    known = ", ".join(kind.template for kind in _KINDS)
    raise _not_found(uri, f"there is no such resource; known: {known}")


def _not_found(uri: str, reason: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, reason, {"uri": uri})


def _read_task(context: HubContext, parameters: UriParameters) -> Any:
    return task_brief(context.find_task(parameters["task"]), context.now, body=True)


def _read_history(context: HubContext, parameters: UriParameters) -> Any:
    return read_last_entries(context, parameters["task"], _HISTORY_LIMIT)


def _read_thread(context: HubContext, parameters: UriParameters) -> Any:
    store = context.hub.store
    thread = find_thread(parameters["thread"], store)
    if isinstance(thread, Refusal):
        raise Refused(thread)
    shown = visible_to(context.reader, store)
    page = last_in_thread(store, thread, _LIST_LIMIT, matches=shown)
    letters = [full_letter(one) for one in page.letters]
    if not letters:
        raise Refused(not_found.thread(thread))
    return letters


def _read_handoff(context: HubContext, parameters: UriParameters) -> Any:
    store = context.hub.store
    handoff = find_handoff(store, parameters["handoff"], context.reader)
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    diagnosis = diagnose_handoff(store, handoff, context.now, context.settings.teamspaces)
    waits = msgspec.to_builtins(diagnosis)
    return msgspec.to_builtins(handoff_detail(handoff)) | {"diagnosis": waits}


_KINDS = (
    ResourceKind(TASK, "task", "A task by any of its names.", _read_task),
    ResourceKind(HISTORY, "history", "What happened to a task, its last entries.", _read_history),
    ResourceKind(
        THREAD, "thread", "The last letters of a thread, the newest at its end.", _read_thread
    ),
    ResourceKind(
        HANDOFF, "handoff", "A handoff: its package, and what it waits for.", _read_handoff
    ),
)
