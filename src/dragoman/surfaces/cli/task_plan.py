"""Task plans: files of tasks that are created together, in TOML (`[[tasks]]`) or JSON Lines.

A task of a plan may wait for others of it, whatever their order: they are created in an order in
which every name exists when it is used. Every fault is told with its line.
"""

import datetime as dt
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from dragoman.core.base import Priority
from dragoman.core.errors import Refusal, Refused
from dragoman.core.limits import MAX_BODY, MAX_LINKS, MAX_TITLE
from dragoman.core.timestamps import parse_rfc3339
from dragoman.files.errors import BadFile
from dragoman.text.error_messages import shape_fault
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, parse_json

MAX_TASKS: Final = 1_000
"""Tasks of a plan."""

MAX_PLAN_BYTES: Final = 4 * 1024 * 1024

_Names = Annotated[tuple[str, ...], Meta(max_length=MAX_LINKS)]


class PlannedTask(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task of a plan."""

    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
    id: str = ""
    text: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    ready: bool = False
    assignee: str = ""
    priority: Priority = "normal"
    blocked_by: _Names = ()
    parent: str = ""
    discovered_from: str = ""
    aliases: _Names = ()
    deadline: str = ""
    checks: tuple[str, ...] = ()
    review: bool = True
    """False: a report of done ends it."""


class PlanItem(Struct, frozen=True):
    """A task of a plan, and where it stands in the file."""

    line: int
    task: PlannedTask
    deadline: int
    """In milliseconds; 0: none."""

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the command that creates it."""
        fields = asdict(self.task)
        review, body = fields.pop("review"), fields.pop("text")
        return fields | {
            "body": body,
            "review_required": None if review else False,
            "deadline": self.deadline,
        }


class TaskPlan(Struct, frozen=True):
    """Tasks in an order in which they can be created."""

    source: str
    items: tuple[PlanItem, ...]
    late_links: tuple[tuple[int, str], ...]
    """Item -> a task that it waits for and that is created after it."""

    def blockers(self, index: int) -> tuple[str, ...]:
        """Names that a task is created to wait for; not those that it is linked to afterwards."""
        late = {other for at, other in self.late_links if at == index}
        return tuple(name for name in self.items[index].task.blocked_by if name not in late)

    def locate(self, refusal: Refusal) -> Refusal:
        """The refusal of one of its commands, with the line of its task."""
        if refusal.command is None:
            return refusal
        links = refusal.command - len(self.items)
        index = refusal.command if links < 0 else self.late_links[links][0]
        return _refusal(self.source, self.items[index].line, refusal.code, refusal.detail)


def parse_plan(source: str, content: bytes) -> TaskPlan:
    """Parse a plan; BadFile or Refused say what is wrong, and in which line."""
    if len(content) > MAX_PLAN_BYTES:
        raise BadFile(f"{source} has more than {MAX_PLAN_BYTES} bytes: make several plans of it")
    read = _read_lines if content.lstrip()[:1] == b"{" else _read_toml
    found = list(read(source, content))
    if not found:
        raise BadFile(f"{source} has no tasks: write each as [[tasks]], or as a JSON object a line")
    if len(found) > MAX_TASKS:
        raise BadFile(
            f"{source}, line {found[MAX_TASKS][0]}: a plan has at most {MAX_TASKS} tasks, this one "
            f"{len(found)}: make several plans of it"
        )
    items = [_parse_item(source, line, value) for line, value in found]
    return _order(source, items)


def _refusal(source: str, line: int, code: str, detail: str) -> Refusal:
    return Refusal(code, f"{source}, line {line}: {detail}")


# --- reading ----------------------------------------------------------------------------------

_TOML_PART: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"""'
    r"|'''.*?'''"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|^[ \t]*(?P<head>\[\[[ \t]*tasks[ \t]*\]\])",
    re.DOTALL | re.MULTILINE,
)
"""Texts and comments, in which a head is none, and the head of a task."""


def _read_toml(source: str, content: bytes) -> Iterator[tuple[int, Any]]:
    """Values of `[[tasks]]`, each with its line."""
    try:
        text = content.decode()
        plan = tomllib.loads(text)
    except UnicodeDecodeError:
        raise BadFile(f"{source} is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(f"{source} is not TOML: {error}") from None
    heads = [part.start("head") for part in _TOML_PART.finditer(text) if part["head"]]
    tasks: Any = plan.pop("tasks", [])
    if plan:
        names = ", ".join(f"{name[:60]!a}" for name in list(plan)[:5])
        raise BadFile(f"{source}: {names} is not understood: a plan has [[tasks]] and nothing else")
    if not isinstance(tasks, list) or len(cast(list[Any], tasks)) != len(heads):
        raise BadFile(f"{source}: write each task as [[tasks]], so that faults have a line")
    lines = (text.count("\n", 0, at) + 1 for at in heads)
    yield from zip(lines, cast(list[Any], tasks), strict=True)


def _read_lines(source: str, content: bytes) -> Iterator[tuple[int, Any]]:
    """Values of the lines that are not blank."""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, parse_json(line, max(MAX_BYTES, 4 * MAX_BODY))
            except StrictJsonError as error:
                raise BadFile(f"{source}, line {number}: {error}") from None


def _parse_item(source: str, line: int, value: Any) -> PlanItem:
    try:
        task = msgspec.convert(_with_texts(value), PlannedTask)
        deadline = parse_rfc3339(task.deadline) if task.deadline else 0
    except msgspec.ValidationError as error:
        raise BadFile(f"{source}, line {line}: {shape_fault(error, PlannedTask)}") from None
    except ValueError as error:
        raise BadFile(f"{source}, line {line}: deadline: {error}") from None
    return PlanItem(line, task, deadline)


def _with_texts(value: Any) -> Any:
    """The value with the times of TOML as texts."""
    if not isinstance(value, dict):
        return value
    return {
        name: one.isoformat() if isinstance(one, dt.date | dt.time) else one
        for name, one in cast(dict[str, Any], value).items()
    }


# --- order ------------------------------------------------------------------------------------

_Edges = Mapping[int, Sequence[int]]
"""Index of a task -> those of the same plan that it names."""


def _order(source: str, items: Sequence[PlanItem]) -> TaskPlan:
    """Order tasks so that each comes after those that it names.

    A task may wait for its own parts, which name it in turn: then it is linked to them afterwards.
    """
    index_of = _index_names(source, items)

    def edges(names: Callable[[PlannedTask], Iterable[str]]) -> _Edges:
        return {
            at: [index_of[name] for name in names(item.task) if name in index_of]
            for at, item in enumerate(items)
        }

    waits = edges(lambda task: task.blocked_by)
    parts = edges(lambda task: (task.parent, task.discovered_from))
    late = {(at, other): None for at in waits for other in waits[at] if at in parts[other]}
    graph = {
        at: [*parts[at], *(other for other in waits[at] if (at, other) not in late)] for at in waits
    }
    try:
        order = _sort(graph)
    except CycleError as error:
        cycle: list[int] = error.args[1][::-1]
        named = " → ".join(items[at].task.id for at in cycle)
        detail = f"these tasks name each other, and none can be the first: {named}"
        raise Refused(_refusal(source, items[cycle[0]].line, "link_cycle", detail)) from None
    place = {at: number for number, at in enumerate(order)}
    links = tuple((place[at], items[other].task.id) for at, other in late)
    return TaskPlan(source, tuple(items[at] for at in order), links)


def _index_names(source: str, items: Sequence[PlanItem]) -> dict[str, int]:
    """Ids of the plan, each with its task; one that stands twice is Refused."""
    index_of: dict[str, int] = {}
    for at, item in enumerate(items):
        id = item.task.id
        if id in index_of:
            first = items[index_of[id]].line
            detail = f"the id {id} is that of the task in line {first} already"
            raise Refused(_refusal(source, item.line, "already_exists", detail))
        if id:
            index_of[id] = at
    return index_of


def _sort(graph: _Edges) -> list[int]:
    """Order of the tasks: that of the file, as far as it is possible; else CycleError."""
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    order, possible = list[int](), list[int]()
    while sorter.is_active():
        for at in sorter.get_ready():
            heappush(possible, at)
        order.append(heappop(possible))
        sorter.done(order[-1])
    return order
