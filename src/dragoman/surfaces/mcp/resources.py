"""The table of resources: what can be read by an address, and what of it is listed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from mcp import types
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from dragoman.core import missing
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.handoff_diagnosis import look_at
from dragoman.engine.reads.closed_letters import is_shown_to
from dragoman.engine.reads.handoffs import find_handoff
from dragoman.engine.reads.letter_names import thread_of
from dragoman.engine.reads.mailbox import last_of
from dragoman.engine.reads.pages import Wanted, page_now
from dragoman.engine.reads.teamspaces import closed_to
from dragoman.engine.shown.handoffs import whole_handoff
from dragoman.surfaces.mcp.desk import Desk
from dragoman.surfaces.mcp.look import brief, last_entries, whole_letter

JSON = "application/json"
TASK = "dragoman://tasks/{task}"
HISTORY = "dragoman://tasks/{task}/history"
THREAD = "dragoman://threads/{thread}"
HANDOFF = "dragoman://handoffs/{handoff}"

_IN_A_LIST = 50
_ENTRIES = 1_000
_PARAMETER = re.compile(r"\\\{(\w+)\\\}")

Parameters = Mapping[str, str]
Listed = tuple[list[types.Resource], int | None]
"""A page of resources, and the cursor of the next one."""


class Shelf(Struct, frozen=True):
    """A kind of resource: resources whose URIs follow one template."""

    template: str
    name: str
    about: str
    read: Callable[[Desk, Parameters], str | bytes]
    mime: str = JSON
    listed: Callable[[Desk, int | None], Listed] | None = None
    """Lists a page of the existing ones; None: they are found by the template only."""

    @property
    def is_template(self) -> bool:
        """True if there is more than one of them."""
        return "{" in self.template

    def match(self, uri: str) -> Parameters | None:
        """Return the parameters in a URI; None if it is of another kind."""
        pattern = _PARAMETER.sub(r"(?P<\1>[^/?#]+)", re.escape(self.template))
        found = re.fullmatch(pattern, uri)
        return found and {key: unquote(part) for key, part in found.groupdict().items()}

    def one(self) -> types.Resource:
        """Describe the only resource of a kind that is no template."""
        return types.Resource(
            uri=self.template, name=self.name, description=self.about, mime_type=self.mime
        )


def list_page(
    shelves: Sequence[Shelf], desk: Desk, cursor: str | None
) -> types.ListResourcesResult:
    """List the next page; the cursor names the kind with which it begins, and the row."""
    at, place = _read_cursor(shelves, cursor)
    rows: list[types.Resource] = []
    for index, shelf in enumerate(shelves[at:], at):
        more: int | None = None
        if shelf.listed is not None:
            found, more = shelf.listed(desk, place)
            rows += found
        elif not shelf.is_template:
            rows.append(shelf.one())
        place = None
        if more is not None:
            return types.ListResourcesResult(resources=rows, next_cursor=f"{index}:{more}")
    return types.ListResourcesResult(resources=rows)


def templates(shelves: Sequence[Shelf]) -> types.ListResourceTemplatesResult:
    """List every template."""
    found = [
        types.ResourceTemplate(
            uri_template=shelf.template,
            name=shelf.name,
            description=shelf.about,
            mime_type=shelf.mime,
        )
        for shelf in shelves
        if shelf.is_template
    ]
    return types.ListResourceTemplatesResult(resource_templates=found)


def read(shelves: Sequence[Shelf], desk: Desk, uri: str) -> types.ReadResourceResult:
    """Read the resource at a URI; MCPError if there is none."""
    for shelf in shelves:
        parameters = shelf.match(uri)
        if parameters is None:
            continue
        try:
            content = shelf.read(desk, parameters)
        except Refused as refused:
            raise _not_there(uri, f"{refused}") from refused
        return types.ReadResourceResult(contents=[_contents(uri, shelf.mime, content)])
    known = ", ".join(shelf.template for shelf in shelves)
    raise _not_there(uri, f"there is no such resource; known: {known}")


def _contents(
    uri: str, mime: str, content: str | bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    if isinstance(content, str):
        return types.TextResourceContents(uri=uri, mime_type=mime, text=content)
    blob = msgspec.to_builtins(content)
    return types.BlobResourceContents(uri=uri, mime_type=mime, blob=blob)


def _not_there(uri: str, why: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, why, {"uri": uri})


def _read_cursor(shelves: Sequence[Shelf], cursor: str | None) -> tuple[int, int | None]:
    if cursor is None:
        return 0, None
    found = re.fullmatch(r"(\d{1,3}):(\d{1,16})", cursor, re.ASCII)
    if found is None or int(found[1]) >= len(shelves):
        raise MCPError(types.INVALID_PARAMS, "this cursor is not one that this server returned")
    return int(found[1]), int(found[2])


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read_task(desk: Desk, parameters: Parameters) -> str:
    return _text(brief(desk.task(parameters["task"]), desk.now, body=True))


def _read_history(desk: Desk, parameters: Parameters) -> str:
    return _text(last_entries(desk, parameters["task"], _ENTRIES))


def _read_thread(desk: Desk, parameters: Parameters) -> str:
    store = desk.hub.store
    thread = thread_of(parameters["thread"], store)
    if isinstance(thread, Refusal):
        raise Refused(thread)
    shown = is_shown_to(desk.actor, desk.settings.teamspaces, store)
    page = last_of(store, thread, _IN_A_LIST, fits=shown)
    letters = [whole_letter(one) for one in page.letters]
    if not letters:
        raise Refused(missing.thread(thread))
    return _text(letters)


def _read_handoff(desk: Desk, parameters: Parameters) -> str:
    store = desk.hub.store
    closed = closed_to(desk.settings.teamspaces, desk.actor)
    handoff = find_handoff(store, parameters["handoff"], desk.actor.name, closed)
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    teams, outlook = desk.settings.teamspaces, desk.interpreter.outlook(handoff)
    waits = msgspec.to_builtins(look_at(store, handoff, desk.now, teams, outlook))
    return _text(msgspec.to_builtins(whole_handoff(handoff)) | {"diagnosis": waits})


def _list_tasks(desk: Desk, before: int | None) -> Listed:
    page = page_now(desk.hub.store, Wanted(before=before, limit=_IN_A_LIST), desk.now)
    rows = [
        types.Resource(
            uri=TASK.format(task=quote(view.task.id, safe="")),
            name=view.task.id,
            title=view.task.title,
            description=view.task.status,
            mime_type=JSON,
        )
        for view in page.tasks
    ]
    return rows, page.next


SHELVES = (
    Shelf(TASK, "task", "A task by any of its names.", _read_task, listed=_list_tasks),
    Shelf(HISTORY, "history", "What happened to a task, its last entries.", _read_history),
    Shelf(THREAD, "thread", "The last letters of a thread, the newest at its end.", _read_thread),
    Shelf(HANDOFF, "handoff", "A handoff: its package, and what it waits for.", _read_handoff),
)
