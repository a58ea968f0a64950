"""Application of the live view: what needs a person, who works, the board, and the ledger."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import ClassVar, Final

import msgspec
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.theme import Theme
from textual.widgets import ContentSwitcher, DataTable, RichLog, Static

from dragoman.core.base import Status
from dragoman.core.errors import DragomanError
from dragoman.engine.event_sentences import describe_event
from dragoman.engine.ports import Gap
from dragoman.engine.schemas.status import (
    AgentStatusResource,
    AttentionResource,
    StatusResource,
    WorkingResource,
)
from dragoman.engine.schemas.tasks import EntryResource, TaskSummary
from dragoman.surfaces.cli.live_view.cells import (
    BAD,
    GOOD,
    IDLE,
    KINDS,
    RUN,
    STATUSES,
    WAIT,
    age,
    clock,
    parse_time,
    plain,
    status_cell,
    time_left,
)
from dragoman.surfaces.cli.live_view.choices import (
    Choice,
    choices_for_agent,
    choices_for_item,
    choices_for_task,
    choices_for_work,
)
from dragoman.surfaces.cli.live_view.hub_api import HubApi, Viewer
from dragoman.surfaces.cli.live_view.key_bar import KeyBar
from dragoman.surfaces.cli.live_view.prompts import Prompt, TextPage
from dragoman.surfaces.cli.live_view.row_table import Row, RowTable
from dragoman.surfaces.cli.live_view.task_screen import TaskScreen

_PAGES: Final = {"fleet": "Fleet", "board": "Board", "events": "Events"}

_PAGE_KEYS: Final = (("Enter", "Open"), ("1-3", "Pages"), ("?", "Keys"), ("q", "Quit"))

_OPEN: Final[tuple[Status, ...]] = (
    "in-progress",
    "review",
    "blocked",
    "deadletter",
    "ready",
    "backlog",
)

_FILTERS: Final[tuple[Status | None, ...]] = (None, *STATUSES)
"""Filters of the board; None: all that is open."""

_TASKS_OF_STATUS: Final = 100

_FIRST_ENTRIES: Final = 200

_RETRY_SECONDS: Final = (1, 2, 4, 8)

_THEME: Final = Theme(
    "dragoman",
    primary=RUN,
    accent=RUN,
    warning=WAIT,
    error=BAD,
    success=GOOD,
    foreground="#e8e8e4",
    background="#0e1013",
    surface="#0e1013",
    panel="#1d2126",
    dark=True,
)

_HELP: Final = """\
1 2 3     Fleet, Board, Events        Tab    the other table
j k ↑ ↓   the next row, the last      Enter  open its task
← →       on the board: the status    /      go to a task
Esc       back                        q      quit

What can be done with the selected row stands at the bottom with
its key. It is confirmed first, and a refusal is told in the hub's
words. Times are those of this terminal.
"""


class FleetApp(App[DragomanError]):
    """The live view; it ends with the error that kept it from beginning."""

    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-short"), (34, "-tall")]  # noqa: RUF012  as textual declares it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "page('fleet')"),
        Binding("2", "page('board')"),
        Binding("3", "page('events')"),
        Binding("q,ctrl+c", "quit"),
        Binding("question_mark", "help"),
        Binding("slash", "go_to"),
    ]
    CSS = """
    Screen { layout: vertical; background: $background; }
    #title, #counts, #meter, #keys, .head { height: 1; }
    #title { background: $panel; }
    .head { margin: 0; }
    ContentSwitcher { height: 1fr; }
    #fleet, #board, #events { height: 1fr; }
    #needs { height: auto; max-height: 50%; }
    #work, #tasks, #log { height: 1fr; }
    #detail { height: auto; max-height: 4; padding: 0 1; background: $panel; }
    #recent { height: 8; display: none; }
    #recent-head { display: none; }
    .-tall #recent, .-tall #recent-head { display: block; }
    RowTable, RichLog { background: $background; scrollbar-size-vertical: 1;
      scrollbar-background: $background; scrollbar-color: $panel; }
    RowTable:focus, RichLog:focus { background-tint: $foreground 0%; }
    RowTable { overflow-x: hidden; scrollbar-gutter: stable; }
    RowTable > .datatable--header { background: $background; }
    RowTable > .datatable--cursor { background: $panel; color: $foreground; text-style: none; }
    RowTable:focus > .datatable--cursor { background: #2b4a63; }
    TaskScreen #task-head { height: auto; max-height: 8; }
    TaskScreen #story { height: 1fr; border-top: solid $panel; }
    Prompt, TextPage { align: center middle; background: $background 50%; }
    #prompt { width: 76; max-width: 100%; height: auto; max-height: 90%; padding: 1 2;
      background: $panel; }
    #prompt Input { background: $background; margin: 0 0 1 0; }
    #prompt-title { margin: 0 0 1 0; }
    """

    def __init__(self, api: HubApi) -> None:
        super().__init__()
        self.api = api
        self._viewer: Viewer | None = None
        self._status: StatusResource | None = None
        self._read_at = 0.0
        self._tasks: Sequence[TaskSummary] = ()
        self._filter: Status | None = None
        self._connection = ("connecting", WAIT)
        self._position = 0
        self._arrived = list[EntryResource]()
        self._is_stale = self._is_reading = False

    # --- life ---------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Build the pages."""
        yield Static(id="title")
        yield Static(id="counts")
        yield Static(id="meter")
        with ContentSwitcher(initial="fleet"):
            with Vertical(id="fleet"):
                yield Static(id="needs-head", classes="head")
                yield RowTable(
                    "needs", (("WHAT", 12), ("FOR", 5), ("WHO", 11), ("TASK", 18), ("", 20))
                )
                yield Static(id="detail")
                yield Static(id="work-head", classes="head")
                yield RowTable(
                    "work",
                    (
                        *(("AGENT", 13), ("TASK", 18), ("TRY", 4), ("FOR", 5), ("QUIET", 6)),
                        *(("LEASE", 6), ("", 20)),
                    ),
                )
                yield Static(Text("LAST EVENTS", "bold"), id="recent-head", classes="head")
                yield RichLog(id="recent", max_lines=50, min_width=20)
            with Vertical(id="board"):
                yield Static(id="board-head", classes="head")
                yield RowTable(
                    "tasks",
                    (
                        ("STATUS", 14),
                        ("FOR", 5),
                        ("TASK", 20),
                        ("AGENT", 11),
                        ("LEASE", 6),
                        ("", 20),
                    ),
                )
            with Vertical(id="events"):
                yield RichLog(id="log", max_lines=2_000, min_width=20)
        yield KeyBar(id="keys")

    def on_mount(self) -> None:
        """Read the hub, and follow it."""
        self.register_theme(_THEME)
        self.theme = _THEME.name
        self.query_one("#needs", RowTable).focus()
        self.run_worker(self._follow())
        self.set_interval(0.4, self._take_arrived)
        self.set_interval(1, self._show)

    async def on_unmount(self) -> None:
        """Close the connections."""
        await self.api.close()

    @property
    def now(self) -> int:
        """Time of the hub, whose clock may differ from that of this machine."""
        if self._status is None:
            return 0
        return parse_time(self._status.at) + int((time.monotonic() - self._read_at) * 1_000)

    @property
    def may_write(self) -> bool:
        """True if the role of the viewer may change tasks."""
        return self._viewer is not None and self._viewer.may["write"]

    async def _follow(self) -> None:
        """Follow the ledger for ever; connect again when the connection is lost."""
        failures = 0
        while True:
            try:
                await self.api.relocate()
                await self._begin()
                async for entry in self.api.follow(self._position):
                    failures = 0
                    self._take(entry)
                raise ConnectionResetError("the hub has ended the stream")
            except (DragomanError, ConnectionResetError, msgspec.MsgspecError) as error:
                if self._viewer is None and isinstance(error, DragomanError):
                    self.exit(error)
                    return
                detail = error.detail if isinstance(error, DragomanError) else f"{error}"
                self._connection = (f"lost, as of {clock(self.now)}: {detail}", BAD)
                self._show_title()
            await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
            failures += 1

    async def _begin(self) -> None:
        is_first = self._viewer is None
        self._viewer = await self.api.viewer()
        await self._read()
        if is_first and self._status is not None:
            entries = await self.api.latest_entries(self._status.position, _FIRST_ENTRIES)
            self._write(entries)
            self._position = self._status.position

    def _take(self, entry: EntryResource | Gap | None) -> None:
        self._connection = ("live", GOOD)
        if isinstance(entry, EntryResource):
            self._position = entry.position
            self._arrived.append(entry)
        elif isinstance(entry, Gap):
            self._position = entry.until
            self._is_stale = True
            line = plain(f"… entries up to {entry.until} are not shown here", WAIT)
            self.query_one("#log", RichLog).write(line)

    def _take_arrived(self) -> None:
        """Show what has arrived, together."""
        entries, self._arrived = self._arrived, []
        if entries:
            self._is_stale = True
            self._write(entries)
        if self._is_stale and not self._is_reading:
            self.run_worker(self._refresh())

    async def _refresh(self) -> None:
        self._is_stale, self._is_reading = False, True
        try:
            with suppress(DragomanError):  # the stream tells that the hub does not answer
                await self._read()
            for screen in self.screen_stack:
                if isinstance(screen, TaskScreen):
                    screen.note_growth()
        finally:
            self._is_reading = False

    async def _read(self) -> None:
        self._status = await self.api.status()
        self._read_at = time.monotonic()
        if self._page == "board":
            statuses = _OPEN if self._filter is None else (self._filter,)
            limit = _TASKS_OF_STATUS
            pages = [await self.api.tasks(status, limit) for status in statuses]
            self._tasks = [task for page in pages for task in page]
        self._show()

    # --- what is shown ------------------------------------------------------------------------

    @property
    def _has_widgets(self) -> bool:
        """True while there are widgets to show on: at the end they go before the workers do."""
        return bool(self.query("#title"))

    @property
    def _page(self) -> str:
        return self.query_one(ContentSwitcher).current or ""

    def _show(self) -> None:
        self._show_title()
        status = self._status
        if status is None or not self._has_widgets:
            return
        self._show_counts(status)
        self._show_needs(status)
        self._show_work(status)
        self._show_board(status)
        self._show_selected()

    def _show_title(self) -> None:
        if not self._has_widgets:
            return
        title = Text(no_wrap=True, overflow="ellipsis", end="")
        title.append(" dragoman ", "bold")
        title.append(self.api.location.url.partition("://")[2].rstrip("/"), "dim")
        title.append("  ")
        for number, (page, word) in enumerate(_PAGES.items(), start=1):
            title.append(f" {number} {word} ", "reverse" if page == self._page else "")
        text, colour = self._connection
        title.append(f"  ● {text}", colour)
        if self._status is not None and text == "live":
            title.append(f" {clock(self.now)}", "dim")
        self.query_one("#title", Static).update(title)

    def _show_counts(self, status: StatusResource) -> None:
        counts = Text(" ", no_wrap=True, overflow="ellipsis", end="")
        meter = Text(" ", no_wrap=True, end="")
        known: list[tuple[Status, int]] = [
            (one, status.counts[one]) for one in STATUSES if status.counts.get(one)
        ]
        for one, count in known:
            mark, word, colour = STATUSES[one]
            counts.append(f"{mark} {count}", colour)
            counts.append(f" {word} ", "dim")
        if not known:
            counts.append("no tasks yet: `dragoman task create TITLE --ready` makes one", "dim")
        width = max(self.size.width - 2, 10)
        unfinished: list[tuple[Status, int]] = [
            (one, count) for one, count in known if one in _OPEN
        ]
        widths = _shares([count for _, count in unfinished], width)
        for (one, _), cells in zip(unfinished, widths, strict=True):
            meter.append("▬" * cells, STATUSES[one][2])
        self.query_one("#counts", Static).update(counts)
        self.query_one("#meter", Static).update(meter)

    def _show_needs(self, status: StatusResource) -> None:
        total, listed = sum(status.attention_counts.values()), len(status.attention)
        head = Text.assemble(("NEEDS YOU", "bold"))
        if total:
            head.append(f"  {total}" if total == listed else f"  {listed} of {total}", "dim")
        else:
            head.append("  nothing", GOOD)
        self.query_one("#needs-head", Static).update(head)
        now, rows = self.now, list[Row]()
        for item in status.attention:
            mark, word, colour = KINDS[item.kind]
            cells = (
                plain(f"{mark} {word}", colour),
                plain(age(item.since, now)),
                plain(item.agent or ""),
                plain(item.task or ""),
                plain(item.text),
            )
            rows.append(Row(_item_key(item), cells))
        self.query_one("#needs", RowTable).show(rows)

    def _show_work(self, status: StatusResource) -> None:
        head = Text.assemble(("AT WORK", "bold"))
        count, listed = status.counts.get("in-progress", 0), len(status.working)
        head.append(f"  {count}" if count == listed else f"  {listed} of {count}", "dim")
        ready = f"  {status.claimable} ready for anybody, {status.reserved} for one agent"
        head.append(ready, "dim")
        self.query_one("#work-head", Static).update(head)
        rows = [_work_row(one, self.now) for one in status.working]
        rows += [_agent_row(one, self.now) for one in status.agents if not one.holds]
        self.query_one("#work", RowTable).show(rows)

    def _show_board(self, status: StatusResource) -> None:
        head = Text.assemble(("BOARD  ", "bold"), no_wrap=True)
        for one in _FILTERS:
            word = "open" if one is None else STATUSES[one][1]
            head.append(f" {word} ", "reverse" if one == self._filter else "dim")
        self.query_one("#board-head", Static).update(head)
        rows = [_task_row(task, self.now) for task in self._tasks]
        for one in STATUSES if self._page == "board" else ():
            listed = sum(task.status == one for task in self._tasks)
            more = status.counts.get(one, 0) - listed
            if listed and more > 0:
                cells = (status_cell(one), plain(""), plain(f"… {more} more", "dim"))
                at = max(n for n, task in enumerate(self._tasks) if task.status == one) + 1
                rows.insert(at + len(rows) - len(self._tasks), Row(f"more:{one}", _pad(cells)))
        self.query_one("#tasks", RowTable).show(rows)

    def _show_selected(self) -> None:
        item = self._selected_item()
        detail = Text(end="")
        if item is not None:
            detail.append_text(Text(plain(item.text).plain))
            detail.append("\n")
            detail.append_text(plain(item.command, "dim"))
        self.query_one("#detail", Static).update(detail)
        self.query_one("#detail").display = item is not None
        self.query_one("#keys", KeyBar).show(_PAGE_KEYS, self._choices()[1])

    def _write(self, entries: Sequence[EntryResource]) -> None:
        lines = [_entry_line(entry) for entry in entries[-500:]]
        for id in ("#log", "#recent"):
            log = self.query_one(id, RichLog)
            for line in lines:
                log.write(line, width=self.size.width - 1)

    # --- what is selected ---------------------------------------------------------------------

    def _selected_item(self) -> AttentionResource | None:
        table = self.query_one("#needs", RowTable)
        listed = self._status.attention if self._status is not None else ()
        chosen = (item for item in listed if _item_key(item) == table.selected)
        return next(chosen, None) if table.has_focus else None

    def _choices(self) -> tuple[str, tuple[Choice, ...]]:
        """Subject of the focused row, and the choices for it."""
        if not self.may_write or self._status is None:
            return "", ()
        item = self._selected_item()
        if item is not None:
            return " · ".join(filter(None, (item.task, item.text))), choices_for_item(item)
        kind, _, name = (self._selected_key() or "").partition(":")
        if kind == "work":
            return name, choices_for_work(name)
        if kind == "agent":
            named = (one for one in self._status.agents if one.name == name)
            return name, next(map(choices_for_agent, named), ())
        if kind == "task":
            task = next(one for one in self._tasks if one.id == name)
            return f"{task.id}: {task.title}", choices_for_task(task)
        return "", ()

    def _selected_key(self) -> str | None:
        table = self.focused
        return table.selected if isinstance(table, RowTable) else None

    # --- keys ---------------------------------------------------------------------------------

    def action_page(self, page: str) -> None:
        """Show a page."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.query_one(ContentSwitcher).current = page
        first = {"fleet": "#needs", "board": "#tasks", "events": "#log"}[page]
        self.query_one(first).focus()
        self._is_stale = True
        self._show()

    def action_filter(self, step: int) -> None:
        """Show the tasks of the next status on the board."""
        if self._page != "board" or len(self.screen_stack) > 1:
            return
        at = _FILTERS.index(self._filter) + step
        self._filter = _FILTERS[at % len(_FILTERS)]
        self._tasks = ()
        self._is_stale = True
        self._show()

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(TextPage(Text(_HELP)))

    def action_go_to(self) -> None:
        """Ask for a task, and open it."""
        self.run_worker(self._go_to())

    async def _go_to(self) -> None:
        name = await self.push_screen_wait(Prompt("Go to a task", (), "Any name of it"))
        if name:
            self.push_screen(TaskScreen(name, self))

    def on_key(self, event: Key) -> None:
        """Do with the selected row what the key stands for."""
        if len(self.screen_stack) > 1:
            return
        about, choices = self._choices()
        for choice in choices:
            if choice.key == event.character:
                event.stop()
                self.begin(choice, about)
                return

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the task of a row."""
        event.stop()
        item = self._selected_item()
        kind, _, name = (self._selected_key() or "").partition(":")
        task = item.task if item is not None else name if kind in ("work", "task") else None
        if task:
            self.push_screen(TaskScreen(task, self))

    def on_data_table_row_highlighted(self, _: DataTable.RowHighlighted) -> None:
        """Show what can be done with a row."""
        self._show_selected()

    def on_descendant_focus(self) -> None:
        """Show what can be done in the other table."""
        if len(self.screen_stack) == 1:
            self._show_selected()

    # --- actions ------------------------------------------------------------------------------

    def begin(self, choice: Choice, about: str) -> None:
        """Confirm and do something; the hub's refusal is shown in its words."""
        self.run_worker(self._act(choice, about))

    async def _act(self, choice: Choice, about: str) -> None:
        try:
            body, lines = dict(choice.fields), [Text(plain(about).plain)]
            if choice.gate:
                handoff = await self.api.handoff(choice.gate)
                body |= {"package_hash": handoff.package_hash} if handoff.package_hash else {}
                lines.append(plain(f"from {handoff.from_agent} to {handoff.to_agent}, package"))
                lines.append(plain(handoff.package_hash or "without a hash", "bold"))
            prompt = Prompt(
                choice.label, lines, choice.prompt, may_be_empty=choice.is_text_optional
            )
            text = await self.push_screen_wait(prompt)
            if text is None:
                return
            if choice.text_field:
                body[choice.text_field] = text
            await self.api.act(choice.path, body)
            self.notify(plain(f"{choice.label}: done. {about}").plain, markup=False)
        except DragomanError as error:
            self.explain(error)
        self._is_stale = True

    def explain(self, error: DragomanError) -> None:
        """Show an error or a refusal until it is closed."""
        self.push_screen(TextPage(Text(f"{error.code}: {plain(error.detail).plain}")))


# --- rows -------------------------------------------------------------------------------------


def _item_key(item: AttentionResource) -> str:
    parts = (item.kind, item.task, item.agent, item.question, item.mail, item.handoff)
    return "\0".join(part or "" for part in parts)


def _pad(cells: tuple[Text, ...], count: int = 6) -> tuple[Text, ...]:
    return (*cells, *(plain("") for _ in range(count - len(cells))))


def _work_row(one: WorkingResource, now: int) -> Row:
    cells = (
        plain(f"● {one.agent}", RUN),
        plain(one.task),
        plain(f"{one.attempt}"),
        plain(age(one.since, now)),
        plain(age(one.last_progress, now)),
        time_left(one.lease_until, now),
        plain(one.title),
    )
    return Row(f"work:{one.task}", cells)


def _agent_row(one: AgentStatusResource, now: int) -> Row:
    """Row of an agent that holds nothing."""
    facts = (
        f"paused: {one.paused.reason}" if one.paused else "idle",
        f"{one.waiting} ready for it" if one.waiting else "",
        "" if one.registered else "not registered",
    )
    colour = WAIT if one.paused else IDLE
    empty = plain("")
    cells = (
        plain(f"○ {one.name}", colour),
        *(empty, empty, empty),
        plain(age(one.last_seen, now), "dim"),
        empty,
        plain(", ".join(filter(None, facts)), colour),
    )
    return Row(f"agent:{one.name}", cells)


def _task_row(task: TaskSummary, now: int) -> Row:
    lease = task.lease.expires_at if task.lease is not None else None
    title = plain(task.title)
    if task.wait_reason:
        title.append_text(plain(f" · {task.wait_reason}", "dim"))
    cells = (
        status_cell(task.status),
        plain(age(task.last_transition_at, now)),
        plain(task.id),
        plain(task.assignee or task.reserved_for or ""),
        time_left(lease, now),
        title,
    )
    return Row(f"task:{task.id}", cells)


def _entry_line(entry: EntryResource) -> Text:
    about = entry.stream.partition(":")[2]
    sentence = describe_event(entry.type, msgspec.json.decode(entry.body))
    return Text.assemble(
        (clock(parse_time(entry.at)), "dim"),
        " ",
        plain(entry.actor.rpartition(":")[2], "bold"),
        " ",
        plain(about, RUN),
        " ",
        plain(sentence),
        no_wrap=True,
        overflow="ellipsis",
    )


def _shares(counts: Sequence[int], width: int) -> Iterator[int]:
    """Cells of a bar for each count; none is left out that is not zero."""
    total = max(sum(counts), 1)
    left = width
    for count in counts:
        cells = min(max(1, round(count * width / total)), left)
        left -= cells
        yield cells
