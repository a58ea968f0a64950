"""`dragoman story`: everything about one task, in the order of the ledger."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.queries.story import Story, read_story, whole_story
from dragoman.engine.schemas.story import story_page
from dragoman.engine.schemas.tasks import encode
from dragoman.surfaces.cli.caller import require_own_process
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen
from dragoman.surfaces.story_text import story_as_html, story_as_markdown
from dragoman.system.safe_fs import write_atomically

_PAGE = 1_000


def story(
    context: CommandContext,
    task: TaskArgument,
    *,
    html: Annotated[
        Path | None,
        option("--html", "FILE", "Write one HTML page that opens without a hub, and no Markdown."),
    ] = None,
) -> CommandResult:
    """Tell all that happened to a task, in Markdown.

    It has the task's own history, letters, handoffs, its intent, runs, turns, tool calls,
    questions and answers, with who said it, in which dialect, and how long it took.

    \b
    Examples:
      dragoman story TASK-2026-02-09-001
      dragoman story bead:ol-527.1 --html story.html
    """
    if html is not None:
        require_own_process()
    with context.open_for_reading() as directory:
        read = _reader(context, directory, task)
        first = read(0)
        if isinstance(first, Refusal):
            raise Refused(first)
        items = tuple(whole_story(first, read))
        now = directory.hub.clock.now()
    if html is not None:
        write_atomically(html, story_as_html(first.task.task, items).encode())
    whole = Story(first.task, items, None)
    data: dict[str, Any] = json.loads(encode(story_page(whole, now)))

    def print_story(screen: Screen) -> None:
        if html is not None:
            screen.line(f"wrote the story of {first.task.task.id} to {html}")
            return
        for line in story_as_markdown(first.task.task, items):
            screen.line(line)

    return CommandResult(data, print_story)


def _reader(
    context: CommandContext, directory: DataDirectory, task: str
) -> Callable[[int], Story | Refusal]:
    store, dialects = directory.hub.store, directory.router.dialects
    reader = context.reader(directory)

    def read(after: int) -> Story | Refusal:
        return read_story(store, task, dialects, after=after, limit=_PAGE, reader=reader)

    return read


COMMANDS = (CliCommand("story", story),)
