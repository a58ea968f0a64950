"""The audit log of handoffs, `teamspaces/<teamspace>/handoffs/handoffs.jsonl`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import stream_entries
from dragoman.files.disk import Disk
from dragoman.files.guarding import Warn
from dragoman.files.handoffs.lines import render_lines
from dragoman.files.layout import TEAMSPACES, handoff_log_path
from dragoman.files.line_log import LineLog, LogFiles, RenderedLines, number_decoder
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.views import State, fold

_STREAM_PREFIX: Final = handoff_stream("")
_DEFAULT_TEAMSPACE: Final = "default"
_CACHE_SIZE: Final = 256
_PAGE: Final = 1_000
_NO_LINES: Final[RenderedLines] = ("", [])


event_id_of: Final = number_decoder("event_id")
"""Event id of an audit line; -1 when it has none."""


def open_handoff_log(store: Store, disk: Disk, warn: Warn) -> LineLog:
    """Open the audit log of all teamspaces."""
    cache = _HandoffCache(store)

    def render_entry(entry: Entry) -> RenderedLines:
        if not entry.stream.startswith(_STREAM_PREFIX):
            return _NO_LINES
        after = cache.state_after(entry)
        return handoff_log_path(after.teamspace), render_lines(entry, after)

    def first_position(path: str) -> int | None:
        space = path.removeprefix(f"{TEAMSPACES}/").partition("/")[0]
        first = store.list_page(ListQuery(f"handoffs.space:{space}", limit=1))
        return first[0].position if first else None

    def list_growing() -> list[str]:
        spaces = [space.name for space in disk.list(TEAMSPACES) if space.kind == "folder"]
        paths = map(handoff_log_path, sorted({*spaces, _DEFAULT_TEAMSPACE}))
        return [path for path in paths if disk.stat(path) or first_position(path)]

    def list_existing() -> list[str]:
        return [path for path in list_growing() if disk.stat(path)]

    return LineLog(
        disk, render_entry, event_id_of, LogFiles(list_existing, list_growing, first_position), warn
    )


def lines_from_ledger(store: Store, id: str) -> Iterator[bytes]:
    """Render the lines of one handoff from its entries."""
    cache = _HandoffCache(store)
    for entry in stream_entries(store, handoff_stream(id)):
        yield from render_lines(entry, cache.state_after(entry))


class _HandoffCache:
    """States of handoffs at each of their entries; the most recently used are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, tuple[int, State]] = {}

    def state_after(self, entry: Entry) -> Handoff:
        """State of the handoff after an entry of its stream."""
        version, state = self._last.pop(entry.stream, (0, None))
        if version != entry.version - 1:
            state = self._refold(entry)
        after = _fold_entry(state, entry)
        self._last[entry.stream] = entry.version, after
        if len(self._last) > _CACHE_SIZE:
            del self._last[next(iter(self._last))]
        assert isinstance(after, Handoff), "a handoff stream has events of its handoff only"
        return after

    def _refold(self, until: Entry) -> State | None:
        state: State | None = None
        after = 0
        while page := self._store.history(until.stream, after, _PAGE, until=until.position - 1):
            for entry in page:
                state = _fold_entry(state, entry)
            after = page[-1].version
        return state


def _fold_entry(state: State | None, entry: Entry) -> State:
    line = read_line(entry.line)
    return fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
