"""`dragoman task tree`: tasks with their parts, and what they wait for."""

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

_MAX_LOOKED_AT: Final = 2_000
"""Tasks among which those are looked for that are no part of another."""


class TreeNode(Struct, frozen=True):
    """A task, and the tasks below it."""

    task: Task
    relation: str
    """Its relation to the task above it: `part` or `waits for`; empty: none is above it."""
    below: "tuple[TreeNode, ...]"
    has_more: bool = False
    """Tasks below it are shown where it stands first, or are left out."""


def tree(
    context: CommandContext,
    task: Annotated[
        str, argument("ID", "Any name of the task; else all that are no part of another.")
    ] = "",
    limit: LimitOption = 50,
) -> CommandResult:
    """Show tasks with their parts and what they wait for.

    A line that ends in … has more below it, shown elsewhere or left out for --limit.

    \b
    Examples:
      dragoman task tree TASK-2026-02-09-001
      dragoman task tree --limit 10
    """
    with context.open_readonly() as directory:
        store = directory.store
        roots = [load_task(directory, task).task] if task else list(_find_roots(store, limit + 1))
        grower = _Grower(store, limit)
        found = [grower.grow(root) for root in roots if grower.has_room]
        is_cut = grower.is_cut or len(found) < len(roots)

    def show(screen: Screen) -> None:
        for node in found:
            _print_node(screen, node, "")
        if not found:
            screen.line("no tasks")
        if is_cut:
            screen.line("There are more: give a greater --limit, or the id of one of these")

    return CommandResult({"tasks": [_node_to_dict(node) for node in found], "more": is_cut}, show)


def _find_roots(store: Store, limit: int) -> list[Task]:
    """The newest tasks that are no part of another."""
    newest = list_tasks(store, TaskQuery(limit=_MAX_LOOKED_AT))
    return [view.task for view in newest if not view.task.parent][:limit]


class _Grower:
    """Finds the tasks below others, each of them once, up to a number of lines."""

    def __init__(self, store: Store, limit: int) -> None:
        self._store = store
        self._left = limit
        self._seen = set[str]()
        self.is_cut = False
        """True if tasks were left out."""

    @property
    def has_room(self) -> bool:
        """True while another task may be shown."""
        return self._left > 0

    def grow(self, task: Task, relation: str = "", depth: int = 0) -> TreeNode:
        """A task with all below it."""
        names = [("part", one) for one in task.children]
        names += [("waits for", one) for one in task.open_blockers if one not in task.children]
        self._left -= 1
        if task.id in self._seen or depth == _MAX_DEPTH:
            return TreeNode(task, relation, (), has_more=bool(names))
        self._seen.add(task.id)
        below = list[TreeNode]()
        for kind, name in names:
            if not self.has_room:
                self.is_cut = True
                return TreeNode(task, relation, tuple(below), has_more=True)
            below += filter(None, [self._load(name, kind, depth)])
        return TreeNode(task, relation, tuple(below))

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
        " …" if node.has_more else "",
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
