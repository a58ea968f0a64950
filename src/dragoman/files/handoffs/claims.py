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
from dragoman.files.handoffs.lines import EventContext, render_keys
from dragoman.files.line_log import LINES_PER_ENTRY

_LineKeys = Mapping[str, Any]
_ENTRY_KEY: Final = "entry"

_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class LineChecker:
    """Checks the lines of a file in order; ValueError names the wrong keys of a line."""

    def __init__(self) -> None:
        self._expected: dict[str, list[_LineKeys]] = {}
        """Handoff -> lines of its last event that are still to come."""

    def check_first(
        self, line: bytes, position: int, at: int, event: AnyEvent, after: Handoff
    ) -> None:
        """Check the line that carries an event."""
        found = _decode(line)
        if expected := self._expected.pop(after.id, None):
            raise ValueError(
                f"{expected[0]['event']} ({expected[0]['event_id']}) is missing before it"
            )
        actor = str(found.get("asked_by") or found.get("actor", ""))
        rendered = render_keys(event, at, EventContext(actor, after))
        if not rendered:
            raise ValueError("its event gives no line")
        numbered = [
            {**keys, "event_id": position * LINES_PER_ENTRY + number}
            for number, keys in enumerate(rendered)
        ]
        _compare_keys({key: found[key] for key in found if key != _ENTRY_KEY}, numbered[0])
        if numbered[1:]:
            self._expected[after.id] = [*numbered[1:]]

    def check_further(self, line: bytes, handoff: str) -> None:
        """Check a further line of the last event."""
        expected = self._expected.get(handoff)
        if not expected:
            raise ValueError("no event before it gives such a line")
        _compare_keys(_decode(line), expected.pop(0))
        if not expected:
            del self._expected[handoff]

    def missing_line(self) -> str:
        """Line that is still missing at the end of the file; empty when it is complete."""
        return next((f"{due[0]['event']} of {id}" for id, due in self._expected.items()), "")


def _compare_keys(found: _LineKeys, expected: _LineKeys) -> None:
    normalized: _LineKeys = _decode(_encode(expected))
    wrong = sorted(key for key in {*found, *normalized} if found.get(key) != normalized.get(key))
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: not what its event says")


def normalize_line(line: bytes) -> bytes:
    """Normalize a line, so that it does not depend on the JSON encoder."""
    return _encode(_decode(line))
