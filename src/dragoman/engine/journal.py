"""The entries of a batch: said one by one, written and chained at its end, all in one go.

Writing and hashing them between two decisions would take twice as long: each of these steps is
short, and pushes the others out of the processor's nearest memory.
"""

from collections.abc import Mapping

from dragoman.core.events import AnyEvent
from dragoman.engine.ports import NewEntry
from dragoman.engine.snapshots import CachedStream
from dragoman.ledger.chain import link_hash
from dragoman.ledger.entry import Line, write_line


class PendingEntries(list[Line[AnyEvent]]):
    """The new entries of a batch, in order.

    They are encoded and hashed at the end of the batch, all in one go: between two decisions that
    would take twice as long, because the short steps evict each other from the processor's caches.
    """

    def chain(self, known: Mapping[str, CachedStream]) -> tuple[list[NewEntry], dict[str, bytes]]:
        """Chain the entries: the rows to write, and the last hash of each stream; `known` has the
        hashes from before the batch."""
        entries: list[NewEntry] = []
        hashes: dict[str, bytes] = {}
        for line, data in zip(self, list(map(write_line, self)), strict=True):
            stream = known[line.stream]
            previous = hashes.get(line.stream, stream.hash)
            digest = hashes[line.stream] = link_hash(previous, data)
            entries.append(
                NewEntry(stream.number, line.version, line.event, data, previous, digest)
            )
        return entries, hashes
