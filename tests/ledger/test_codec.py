"""Event codec: old versions are upcast when read, and unknown ones are refused."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.base import Event
from dragoman.core.errors import LedgerError
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.task_state import TaskNoted, TaskTransitioned
from dragoman.ledger.entry import CODEC, UPCASTERS, WRITTEN_AS, Codec
from tests.ledger.type_strategies import values_of_type
from tests.requirements import proves

pytestmark = proves("LEDGER-UPCAST")


class Moved(Event, frozen=True):
    """Event of this test, in version 3."""

    to: str
    by: str
    tags: tuple[str, ...] = ()


def upcast_v1(body: dict[str, Any]) -> dict[str, Any]:
    """Rename `target`, the field's name in version 1."""
    return {"to": body.pop("target"), **body}


def upcast_v2(body: dict[str, Any]) -> dict[str, Any]:
    """Add `by`, which version 2 did not record."""
    return {**body, "by": "unknown"}


OWN = Codec(
    {"thing.moved": Moved, "task.noted": TaskNoted},
    {("thing.moved", 1): upcast_v1, ("thing.moved", 2): upcast_v2},
)


@pytest.mark.parametrize(
    ("version", "body", "event"),
    [
        (1, b'{"target":"here","tags":["a"]}', Moved("here", "unknown", ("a",))),
        (2, b'{"to":"here"}', Moved("here", "unknown")),
        (3, b'{"to":"here","by":"me"}', Moved("here", "me")),
    ],
)
def test_every_version_is_upcast_step_by_step(version: int, body: bytes, event: Moved) -> None:
    original = bytes(body)
    upcast = OWN.decode("thing.moved", version, body)
    assert isinstance(upcast, Moved)
    assert (upcast, upcast.tags) == (event, event.tags)
    assert body == original, "what is stored stays as it was"


def test_current_version_is_one_more_than_the_newest_upcaster() -> None:
    assert OWN.version("thing.moved") == 3
    assert OWN.version("task.noted") == 1


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("thing.moved", 4),
        ("thing.moved", 0),
        ("thing.moved", -1),
        ("task.noted", 2),
        ("thing.unheard", 1),
        ("Moved", 3),
        ("", 1),
    ],
)
def test_unknown_name_or_version_is_refused(name: str, version: int) -> None:
    with pytest.raises(LedgerError, match="is not known to this release"):
        OWN.decode(name, version, b'{"to":"here","by":"me"}')


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"to":1,"target":1}', b'{"to":"\xff","target":"\xff"}']
)
def test_unreadable_body_is_reported_with_its_event(version: int, body: bytes) -> None:
    with pytest.raises(LedgerError, match=r"the body of event thing\.moved cannot be read"):
        OWN.decode("thing.moved", version, body)


def test_upcast_body_must_have_the_current_shape() -> None:
    with pytest.raises(LedgerError, match=r"the body of event thing\.moved cannot be read"):
        OWN.decode("thing.moved", 2, b'{"to":["not","a","text"]}')


@proves("LEDGER-NAMES")
def test_all_events_are_written_in_version_1() -> None:
    assert {name for name, _ in WRITTEN_AS.values()} == set(EVENT_NAMES.values())
    assert {version for _, version in WRITTEN_AS.values()} == {1}
    assert UPCASTERS == {}, "raise the expected versions above together with the first upcaster"


@proves("LEDGER-LINE")
def test_reserved_word_is_written_as_it_reads() -> None:
    event = TaskTransitioned("ready", "blocked", "why")
    body = msgspec.json.encode(event)
    assert body == b'{"from":"ready","to":"blocked","reason":"why"}'
    assert CODEC.decode("task.transitioned", 1, body) == event


@proves("LEDGER-LINE")
@pytest.mark.parametrize(("kind", "name"), EVENT_NAMES.items(), ids=EVENT_NAMES.values())
@given(data=st.data())
def test_any_event_is_read_as_written(kind: type[Event], name: str, data: st.DataObject) -> None:
    event = data.draw(values_of_type(kind))
    body = msgspec.json.encode(event)
    assert b"\n" not in body
    assert CODEC.decode(name, 1, body) == event
