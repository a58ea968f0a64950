"""Stale streams of thoughts: closed once, with their carry-over, without secrets."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.protocols import saop
from dragoman.services.stale_stream_closer import StaleStreamCloser
from dragoman.system.redaction_carry_over_file import STALE_SECONDS, CarryOverFile
from dragoman.text.keyed_digest import keyed_digest
from dragoman.text.redact import Redactor
from tests.protocols.saop.hub import SECRET, SaopHub, pulse, thought
from tests.requirements import proves

pytestmark = proves("SAOP-ENDED")


def digest(content: bytes) -> str:
    return keyed_digest(bytes(32), content).hex()


class ThoughtStreams:
    """A hub that receives thoughts, and the service that closes stale streams."""

    def __init__(self, data: Path) -> None:
        self.folder = data / "carry-over"
        self.seconds = 1_770_670_500.0
        self.tails = CarryOverFile(self.folder, bytes(32), self.now)
        self.choices = choices = saop.Choices(redactor=Redactor(), tails=self.tails, digest=digest)
        self.hub = SaopHub(choices)
        self.service = StaleStreamCloser(
            self.hub.hub, self.tails, partial(saop.final_chunk, choices=choices)
        )
        self.hub.turn(0)

    def now(self) -> float:
        """Time of the clock that the carry-over files use."""
        return self.seconds

    def pass_deadline(self) -> None:
        """Advance the clock past the time that a chunk may take."""
        self.seconds += STALE_SECONDS + 1

    def run(self) -> int:
        """Run the service once."""
        return self.service.run_once(self.hub.clock.now())

    def thoughts(self) -> list[dict[str, Any]]:
        """Payloads of all thoughts of the session."""
        return [one["payload"] for one in self.hub.events(session_id="s-1")]


def test_carried_over_text_is_recorded_when_no_chunk_follows(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("the whole thought without end"))
    assert (streams.run(), len(streams.thoughts())) == (0, 1)
    streams.pass_deadline()
    assert (streams.run(), streams.run()) == (1, 0)
    assert "".join(one["chunk"] for one in streams.thoughts()) == "the whole thought without end"
    assert [one["is_final"] for one in streams.thoughts()] == [False, True]
    assert streams.thoughts()[-1]["agent_id"] == "developer"
    assert list(streams.folder.iterdir()) == []


def test_secret_in_carried_over_text_is_masked(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought(f"it is {SECRET}"))
    streams.pass_deadline()
    assert streams.run() == 1
    whole = "".join(one["chunk"] for one in streams.thoughts())
    assert whole.startswith("it is [REDACTED:github_token:")
    assert SECRET.encode() not in b"".join(one.line for one in streams.hub.store.entries(0, 100))


def test_crash_after_recording_duplicates_nothing(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("half a thou"))
    streams.pass_deadline()
    (file,) = streams.folder.iterdir()
    content = file.read_bytes()
    assert streams.run() == 1
    file.write_bytes(content)
    streams.pass_deadline()
    streams.run()
    assert "".join(one["chunk"] for one in streams.thoughts()) == "half a thou"
    assert list(streams.folder.iterdir()) == []


def test_unwritable_text_is_recorded_later(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("half a thou"))
    streams.pass_deadline()
    streams.hub.store.faults = [StoreUnavailable("the disk is full")]
    with pytest.raises(StoreUnavailable):
        streams.run()
    assert streams.run() == 1
    assert "".join(one["chunk"] for one in streams.thoughts()) == "half a thou"


def test_stream_may_continue_after_it_was_closed(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, thought("half a thou"))
    streams.pass_deadline()
    streams.run()
    assert streams.hub.event(2, thought("ght", final=True))["ok"]
    assert "".join(one["chunk"] for one in streams.thoughts()) == "half a thought"


def test_state_of_an_unfinished_key_in_a_terminal_is_dropped(tmp_path: Path) -> None:
    streams = ThoughtStreams(tmp_path)
    streams.hub.event(1, pulse("-----BEGIN PRIVATE KEY-----"))
    assert len(list(streams.folder.iterdir())) == 1
    streams.pass_deadline()
    assert streams.run() == 0
    assert list(streams.folder.iterdir()) == []
    assert [one["type"] for one in streams.thoughts()] == ["SANDBOX_PULSE"]
