"""Screen of one task: where it stands, and its story as it grows."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, Protocol

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key, Resize
from textual.screen import Screen
from textual.widgets import RichLog, Static

from dragoman.core.errors import DragomanError
from dragoman.engine.schemas.story import StoryItemResource
from dragoman.engine.schemas.tasks import TaskDetail
from dragoman.surfaces.cli.live_view.cells import (
    BAD,
    STATUSES,
    WAIT,
    age,
    clock,
    parse_time,
    plain,
    status_cell,
    time_left,
)
from dragoman.surfaces.cli.live_view.choices import Choice, choices_for_task
from dragoman.surfaces.cli.live_view.hub_api import HubApi
from dragoman.surfaces.cli.live_view.key_bar import KeyBar
from dragoman.surfaces.story_text import join_chunks
from dragoman.text.safe_text import safe_text

_MAX_ITEMS: Final = 1_000
"""Items of a story that are shown, the last ones."""

_MAX_LINES: Final = 12
"""Lines of one text that are shown."""


class Fleet(Protocol):
    """The application around the screen."""

    api: HubApi

    @property
    def now(self) -> int:
        """Time of the hub."""
        ...

    @property
    def may_write(self) -> bool:
        """True if the role of the viewer may change tasks."""
        ...

    def begin(self, choice: Choice, about: str) -> None:
        """Confirm and do something."""
        ...

    def explain(self, error: DragomanError) -> None:
        """Show an error."""
        ...


class TaskScreen(Screen[None]):
    """A task: `enter` leads here, `escape` back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,left,backspace", "app.pop_screen"),
        Binding("j", "scroll_story(1)"),
        Binding("k", "scroll_story(-1)"),
    ]

    def __init__(self, name: str, fleet: Fleet) -> None:
        super().__init__()
        self._fleet = fleet
        self._name_of_task = name
        self._shown: TaskDetail | None = None
        self._items = list[StoryItemResource]()
        self._after = 0
        self._is_stale = True
        self._is_reading = False

    def compose(self) -> ComposeResult:
        """Build the screen."""
        yield Static(Text("…"), id="task-head")
        yield RichLog(id="story", wrap=True, min_width=20, max_lines=20_000, auto_scroll=True)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the task, and again when the ledger has grown."""
        self.query_one(RichLog).focus()
        self.set_interval(0.5, self._read_if_stale)
        self.set_interval(1, self._show_head)
        self._read_if_stale()

    def on_resize(self, _: Resize) -> None:
        """Wrap the story anew."""
        self.query_one(RichLog).clear()
        self._write(self._items)

    def note_growth(self) -> None:
        """Read again: the ledger has grown, or something was done."""
        self._is_stale = True

    def action_scroll_story(self, lines: int) -> None:
        """Scroll the story."""
        self.query_one(RichLog).scroll_relative(y=lines, animate=False)

    def on_key(self, event: Key) -> None:
        """Do what the key stands for."""
        for choice in self._choices():
            if choice.key == event.character:
                event.stop()
                assert self._shown is not None, "choices come from a task"
                self._fleet.begin(choice, f"{self._shown.id}: {self._shown.title}")
                return

    def _choices(self) -> tuple[Choice, ...]:
        may = self._fleet.may_write and self._shown is not None
        return choices_for_task(self._shown) if may and self._shown is not None else ()

    def _read_if_stale(self) -> None:
        if self._is_stale and not self._is_reading:
            self._is_stale, self._is_reading = False, True
            self.run_worker(self._read())

    async def _read(self) -> None:
        try:
            self._shown = await self._fleet.api.task(self._name_of_task)
            self._show_head()
            async for items in self._fleet.api.story(self._shown.id, self._after):
                if items:
                    self._after = items[-1].position
                    self._items = [*self._items, *items][-_MAX_ITEMS:]
                    self._write(items)
        except DragomanError as error:
            self._is_stale = self._shown is not None
            if self._shown is None:
                self.app.pop_screen()  # pyright: ignore[reportUnknownMemberType]
                self._fleet.explain(error)
        finally:
            self._is_reading = False

    # --- what is shown ------------------------------------------------------------------------

    def _show_head(self) -> None:
        task, now = self._shown, self._fleet.now
        if task is None:
            return
        mark, word, colour = STATUSES[task.status]
        head = Text.assemble(
            plain(f" {task.id} ", "bold reverse"), " ", plain(task.title, "bold"), "\n "
        )
        head.append(f"{mark} {word}", colour)
        head.append(f" for {age(task.last_transition_at, now)}", "dim")
        if task.assignee:
            head.append(" · ", "dim")
            head.append_text(plain(task.assignee))
        if task.attempt:
            head.append(f" · attempt {task.attempt} of {task.max_attempts}", "dim")
        if task.lease is not None:
            head.append(" · lease ", "dim")
            head.append_text(time_left(task.lease.expires_at, now))
        if task.priority != "normal":
            head.append(f" · {task.priority}", "dim")
        for line, style in _remarks(task):
            head.append("\n ")
            head.append_text(plain(line, style))
        self.query_one("#task-head", Static).update(head)
        self.query_one(KeyBar).show((("Esc", "Back"),), self._choices())

    def _write(self, items: Sequence[StoryItemResource]) -> None:
        log = self.query_one(RichLog)
        for item in join_chunks(items):
            for line in _story_lines(item):
                log.write(line, width=self.size.width - 1)


def _remarks(task: TaskDetail) -> Iterator[tuple[str, str]]:
    """Lines that a person should see first of a task."""
    for question in task.questions[:2]:
        yield f"{question.asked_by or 'the hub'} asks: {question.text}", WAIT
    if task.obstacle and not task.questions:
        yield f"blocked: {task.obstacle}", BAD
    if task.wait_reason:
        yield task.wait_reason, "dim"
    report = task.report
    if report is not None and task.status in ("review", "deadletter"):
        yield f"{report.agent} reports {report.outcome}: {report.notes}", ""


def _story_lines(item: StoryItemResource) -> Iterator[Text]:
    head = Text.assemble(
        (clock(parse_time(item.at)), "dim"),
        " ",
        plain(item.actor.rpartition(":")[2] or "hub", "bold"),
        " ",
        plain(item.title),
    )
    if item.dialect:
        head.append_text(plain(f" {item.dialect}", "dim"))
    if item.status:
        head.append(" → ", "dim")
        head.append_text(status_cell(item.status))
    yield head
    if item.text and item.text not in item.title:
        lines = safe_text(item.text).rstrip().split("\n")
        for line in lines[:_MAX_LINES]:
            yield Text(f"         {line}", "dim")
        if len(lines) > _MAX_LINES:
            yield Text(f"         … {len(lines) - _MAX_LINES} more lines", "dim italic")
