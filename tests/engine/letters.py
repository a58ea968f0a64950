"""Letters written below the engine: entry, folded state, and list items."""

from dragoman.core.base import Event
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.mail import MailPosted, MailRead
from dragoman.engine.ports import Changes, NewEntry, Store, StreamRow, Transaction
from dragoman.ledger.entry import GENESIS, Line, link_hash, write_line
from dragoman.ledger.stream_state import (
    FOLD_VERSION,
    encode_state,
    fold,
    index_row,
    lists_of,
    load_state,
)

NOW = 1_770_647_400_000


def post(store: Store, id: str, subject: str = "", body: str = "", to: str = "bob") -> None:
    """Store a letter from ann."""
    record(store, id, MailPosted(id, "ann", (to,), "ol-1", "PROGRESS", subject, body))


def read(store: Store, id: str, reader: str = "bob") -> None:
    """Mark a letter as read."""
    record(store, id, MailRead(id, reader))


def record(store: Store, id: str, event: Event) -> None:
    """Append one entry to a letter, with its derived rows."""
    stream, name = f"mail:{id}", EVENT_NAMES[type(event)]

    def work(session: Transaction) -> None:
        found = session.streams([stream])
        empty = StreamRow(0, stream, 0, GENESIS, FOLD_VERSION, b"")
        row = found[0] if found else empty
        before = load_state(stream, row.fold_version, row.state, ())
        state = fold(before, event, NOW)
        number = row.number or session.new_stream_number()
        version = row.version + 1
        line = write_line(Line(stream, version, name, 1, NOW, "agent:ann", id, event))
        digest = link_hash(row.hash, line)
        listed_before, listed_after = set(lists_of(before)), set(lists_of(state))
        session.write(
            Changes(
                entries=[NewEntry(number, version, name, line, row.hash, digest)],
                streams=[
                    StreamRow(
                        number,
                        stream,
                        version,
                        digest,
                        FOLD_VERSION,
                        encode_state(state),
                        index=index_row(state, NOW),
                    )
                ],
                list_additions=[(one, number) for one in sorted(listed_after - listed_before)],
                list_removals=[(one, number) for one in sorted(listed_before - listed_after)],
            )
        )

    store.transact(work)
