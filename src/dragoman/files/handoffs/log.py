"""The audit log of handoffs, `teamspaces/<teamspace>/handoffs/handoffs.jsonl`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.ids import handoff_stream
from dragoman.core.states.handoff import Handoff
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import history
from dragoman.files.disk import Disk
from dragoman.files.guarding import Warn
from dragoman.files.handoffs.lines import lines_of
from dragoman.files.layout import TEAMSPACES, handoffs_path
from dragoman.files.line_log import Files, LineLog, Written, number_under
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.views import State, fold

_STREAM: Final = handoff_stream("")
_DEFAULT: Final = "default"
_REMEMBERED: Final = 256
_PAGE: Final = 1_000
_NOTHING: Final[Written] = ("", [])


number_of: Final = number_under("event_id")
"""Event id of an audit line; -1 when it has none."""


def handoff_log(store: Store, disk: Disk, warn: Warn) -> LineLog:
    """Open the audit log of all teamspaces."""
    courses = _Courses(store)

    def rendered(entry: Entry) -> Written:
        if not entry.stream.startswith(_STREAM):
            return _NOTHING
        after = courses.after(entry)
        return handoffs_path(after.teamspace), lines_of(entry, after)

    def begins(path: str) -> int | None:
        space = path.removeprefix(f"{TEAMSPACES}/").partition("/")[0]
        first = store.listed(ListQuery(f"handoffs.space:{space}", limit=1))
        return first[0].position if first else None

    def growing() -> list[str]:
        spaces = [space.name for space in disk.list(TEAMSPACES) if space.kind == "folder"]
        paths = map(handoffs_path, sorted({*spaces, _DEFAULT}))
        return [path for path in paths if disk.look(path) or begins(path)]

    def found() -> list[str]:
        return [path for path in growing() if disk.look(path)]

    return LineLog(disk, rendered, number_of, Files(found, growing, begins), warn)


def lines_in_ledger(store: Store, id: str) -> Iterator[bytes]:
    """Render the lines of one handoff from its entries."""
    courses = _Courses(store)
    for entry in history(store, handoff_stream(id)):
        yield from lines_of(entry, courses.after(entry))


class _Courses:
    """States of handoffs at each of their entries; the most recently used are cached."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: dict[str, tuple[int, State]] = {}

    def after(self, entry: Entry) -> Handoff:
        """State of the handoff after an entry of its stream."""
        version, state = self._last.pop(entry.stream, (0, None))
        if version != entry.version - 1:
            state = self._folded(entry)
        after = _after(state, entry)
        self._last[entry.stream] = entry.version, after
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        assert isinstance(after, Handoff), "a handoff stream has events of its handoff only"
        return after

    def _folded(self, until: Entry) -> State | None:
        state: State | None = None
        after = 0
        while page := self._store.history(until.stream, after, _PAGE, until=until.position - 1):
            for entry in page:
                state = _after(state, entry)
            after = page[-1].version
        return state


def _after(state: State | None, entry: Entry) -> State:
    line = read_line(entry.line)
    return fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
