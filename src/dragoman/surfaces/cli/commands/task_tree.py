"""`dragoman task tree`: tasks with their parts, and what they wait for."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Final

from msgspec import Struct

from dragoman.core.task_state import Task
from dragoman.engine.ports import Store, TaskQuery
from dragoman.engine.queries.tasks import TaskView, find_task, list_tasks
from dragoman.surfaces.cli.command import CliCommand, LimitOption, argument
from dragoman.surfaces.cli.commands.task_read import load_task
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.render import TASK_STATUS_STYLES, Screen

_MAX_DEPTH: Final = 20

_MAX_TASKS: Final = 1_000
"""Tasks that are shown below others."""

_PAGE: Final = 200

_MAX_PAGES: Final = 10
"""Pages of tasks in which those are looked for that are no part of another."""


class TreeNode(Struct, frozen=True):
    """A task, and the tasks below it."""

    task: Task
    relation: str
    """Its relation to the task above it: `part` or `waits for`; empty: none is above it."""
    below: "tuple[TreeNode, ...]"
    is_shown_above: bool = False
    """The tasks below it are shown where it stands first."""


def tree(
    context: CommandContext,
    task: Annotated[
        str, argument("ID", "Any name of the task; else all that are no part of another.")
    ] = "",
    limit: LimitOption = 50,
) -> CommandResult:
    """Show tasks with their parts and what they wait for.

    \b
    Examples:
      dragoman task tree TASK-2026-02-09-001
      dragoman task tree --limit 10
    """
    with context.open_readonly() as directory:
        store = directory.store
        roots = [load_task(directory, task).task] if task else list(_find_roots(store, limit))
        grower = _Grower(store)
        found = [grower.grow(root) for root in roots]

    def show(screen: Screen) -> None:
        for node in found:
            _print_node(screen, node, "")
        if not found:
            screen.line("no tasks")

    return CommandResult({"tasks": [_node_to_dict(node) for node in found]}, show)


def _find_roots(store: Store, limit: int) -> Iterator[Task]:
    """The newest tasks that are no part of another."""
    return islice((task for task in _newest(store) if not task.parent), limit)


def _newest(store: Store) -> Iterator[Task]:
    before: int | None = None
    for _ in range(_MAX_PAGES):
        views = list_tasks(store, TaskQuery(before=before, limit=_PAGE))
        yield from (view.task for view in views)
        if len(views) < _PAGE:
            return
        before = views[-1].number


class _Grower:
    """Finds the tasks below others, each of them once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = set[str]()

    def grow(self, task: Task, relation: str = "", depth: int = 0) -> TreeNode:
        """A task with all below it."""
        names = [("part", one) for one in task.children]
        names += [("waits for", one) for one in task.open_blockers if one not in task.children]
        if task.id in self._seen or depth == _MAX_DEPTH or len(self._seen) >= _MAX_TASKS:
            return TreeNode(task, relation, (), is_shown_above=bool(names))
        self._seen.add(task.id)
        below = (self._load(name, kind, depth) for kind, name in names)
        return TreeNode(task, relation, tuple(filter(None, below)))

    def _load(self, name: str, relation: str, depth: int) -> TreeNode | None:
        view = find_task(self._store, name)
        return self.grow(view.task, relation, depth + 1) if isinstance(view, TaskView) else None


def _print_node(screen: Screen, node: TreeNode, margin: str) -> None:
    task = node.task
    screen.line(
        margin,
        f"{node.relation} " if node.relation else "",
        (task.id, "bold"),
        "  ",
        (task.status, TASK_STATUS_STYLES[task.status]),
        f"  {task.assignee}" if task.assignee else "",
        f"  {task.title}",
        " …" if node.is_shown_above else "",
    )
    for one in node.below:
        _print_node(screen, one, f"{margin}  ")


def _node_to_dict(node: TreeNode) -> dict[str, object]:
    task = node.task
    return {
        "id": task.id,
        "title": task.title,
        "status": task.status,
        "assignee": task.assignee or None,
        "relation": node.relation or None,
        "below": [_node_to_dict(one) for one in node.below],
    }


COMMANDS = (CliCommand("tree", tree, takes_as=False),)
