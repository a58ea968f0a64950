"""Whether audit lines say what the events in them say, and all of it: the words beside the proof.

The plain keys of a line are made of the event that its first line carries. Who acted stands in the
ledger's own line only, and so does all that the hash of an entry covers: neither can be known from
the file alone.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.core.events import AnyEvent
from dragoman.core.states.handoff import Handoff
from dragoman.files.handoffs.lines import Source, told_by
from dragoman.files.line_log import LINES_PER_ENTRY

_Said = Mapping[str, Any]
_ORIGIN: Final = "entry"

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class Claims:
    """Checks the lines of a file in order; ValueError names the wrong keys of a line."""

    def __init__(self) -> None:
        self._due: dict[str, list[_Said]] = {}
        """Handoff -> lines of its last event that are still to come."""

    def first(self, line: bytes, position: int, at: int, event: AnyEvent, after: Handoff) -> None:
        """Check the line that carries an event."""
        said = _decode(line)
        if due := self._due.pop(after.id, None):
            raise ValueError(f"{due[0]['event']} ({due[0]['event_id']}) is missing before it")
        actor = str(said.get("asked_by") or said.get("actor", ""))
        told = told_by(event, at, Source(actor, after))
        if not told:
            raise ValueError("its event gives no line")
        numbered = [
            {**keys, "event_id": position * LINES_PER_ENTRY + number}
            for number, keys in enumerate(told)
        ]
        _compare({key: said[key] for key in said if key != _ORIGIN}, numbered[0])
        if numbered[1:]:
            self._due[after.id] = [*numbered[1:]]

    def further(self, line: bytes, handoff: str) -> None:
        """Check a further line of the last event."""
        due = self._due.get(handoff)
        if not due:
            raise ValueError("no event before it gives such a line")
        _compare(_decode(line), due.pop(0))
        if not due:
            del self._due[handoff]

    def missing(self) -> str:
        """Line that is still missing at the end of the file; empty when it is complete."""
        return next((f"{due[0]['event']} of {id}" for id, due in self._due.items()), "")


def _compare(said: _Said, expected: _Said) -> None:
    meant: _Said = _decode(_encode(expected))
    wrong = sorted(key for key in {*said, *meant} if said.get(key) != meant.get(key))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: not what its event says")


def same_words(line: bytes) -> bytes:
    """Normalize a line, so that it does not depend on the JSON encoder."""
    return _encode(_decode(line))
