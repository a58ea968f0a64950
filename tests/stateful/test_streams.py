"""Requests over several streams are all or none: tasks, letters, reservations, on every store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.ids import RESERVATIONS_STREAM
from dragoman.core.mail import AckMail, Mail, PostMail, ReadMail
from dragoman.core.reservation import (
    ReleaseReservations,
    Reservations,
    ReserveFiles,
)
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import stream_state
from dragoman.store.memory import MemoryStore
from dragoman.store.postgres import PostgresStore
from dragoman.store.sqlite import SqliteStore
from tests.requirements import proves
from tests.servers import fresh_schema
from tests.stateful.streams_model import PATTERNS, StreamsModel
from tests.stateful.task_model import Model
from tests.stateful.test_task_machine import (
    ACTORS,
    AGENTS,
    COMMANDS,
    KEYS,
    TaskMachine,
    claim_for_self,
)

LETTERS = ("m1", "m2", "m3")
IDS = st.sampled_from((*LETTERS * 3, "m9"))
FILES = st.sampled_from([(name,) for name in PATTERNS])
SOME_FILES = st.just(()) | FILES
LASTING = st.sampled_from((60_000, 300_000))
POSTED = st.builds(
    PostMail,
    st.sampled_from((("alice",), ("bob", "carol"), ("carol", "hera"))),
    st.just("a subject"),
    st.just("a body"),
    id=st.sampled_from(LETTERS),
    bead=st.sampled_from(("", "A", "B", "C")),
    ack_wanted=st.booleans(),
)
RESERVED = st.builds(ReserveFiles, FILES, LASTING)
OTHER_COMMANDS: st.SearchStrategy[Command] = st.one_of(
    POSTED,
    POSTED,
    st.builds(ReadMail, IDS),
    st.builds(AckMail, IDS),
    RESERVED,
    RESERVED,
    st.builds(ReleaseReservations, SOME_FILES),
)
PAIRS = st.permutations([Actor("agent", name) for name in AGENTS]).map(
    lambda names: (names[0], names[1])
)
MIXED = st.lists(OTHER_COMMANDS | COMMANDS, min_size=1, max_size=4).map(tuple)


class StreamsMachine(TaskMachine):
    """Commands of tasks, with letters and reservations in the same requests."""

    _model: StreamsModel

    def _new_model(self) -> Model:
        return StreamsModel()

    @rule(actor=ACTORS, command=OTHER_COMMANDS, key=KEYS)
    def post_or_reserve(self, actor: Actor, command: Command, key: str) -> None:
        """Write or read a letter, or reserve or release files."""
        self._submit((actor, (command,), key))

    @rule(actor=ACTORS, commands=MIXED, key=KEYS)
    def mix_commands(self, actor: Actor, commands: tuple[Command, ...], key: str) -> None:
        """Mix letters and reservations with commands about tasks, in one request."""
        self._submit((actor, claim_for_self(actor, commands), key))

    @rule(id=IDS, pair=PAIRS, acknowledge=st.sampled_from((ReadMail, AckMail)))
    def post_and_acknowledge(
        self, id: str, pair: tuple[Actor, Actor], acknowledge: type[ReadMail | AckMail]
    ) -> None:
        """Post a letter, and read or acknowledge it as its recipient."""
        sender, reader = pair
        self._submit((sender, (PostMail((reader.name,), "a subject", "a body", id=id),), ""))
        self._submit((reader, (acknowledge(id),), ""))

    @rule(pair=PAIRS, first=RESERVED, second=RESERVED)
    def reserve_twice(self, pair: tuple[Actor, Actor], first: Command, second: Command) -> None:
        """Reserve files as two actors, perhaps the same ones."""
        for actor, command in zip(pair, (first, second), strict=True):
            self._submit((actor, (command,), ""))

    @invariant()
    def letters_and_reservations_match_model(self) -> None:
        """Compare every letter and all reservations."""
        store, model = self._hub.store, self._model
        rows = store.streams_of_kind("mail", "", 1_000)
        letters = [state for row in rows if isinstance(state := stream_state(store, row), Mail)]
        assert {
            one.id: (one.sender, one.to, one.bead, list(one.read_by), list(one.acked_by))
            for one in letters
        } == {
            id: (one.sender, one.to, one.bead, one.read_by, one.acked_by)
            for id, one in model.letters.items()
        }
        row = store.stream(RESERVATIONS_STREAM)
        state = None if row is None else stream_state(store, row)
        kept = state.kept if isinstance(state, Reservations) else ()
        assert [(*one.patterns, one.holder, one.until) for one in kept] == [
            (one.pattern, one.holder, one.until) for one in model.reserved
        ]


class PostgresMachine(StreamsMachine):
    """On PostgreSQL; each example has a schema of its own, and a restart connects again."""

    def __init__(self, server: str) -> None:
        self._schema = fresh_schema(server)
        url = self._schema.__enter__()
        super().__init__(lambda _: PostgresStore.open(url, lambda: "machine"))

    def teardown(self) -> None:
        """Close the hub and drop the schema."""
        super().teardown()
        self._schema.__exit__(None, None, None)


def explore(machine: Callable[[], TaskMachine], *, least: int, one_in: int) -> None:
    """Run a machine with a share of the configured examples."""
    examples = max(least, settings().max_examples // one_in)
    # Any factory of machines works, whatever the annotation says.
    run_state_machine_as_test(cast(Any, machine), settings=settings(max_examples=examples))


@proves("MODEL-STREAMS", "CORE-ALL-OR-NONE", "IDEM-REPEAT")
def test_streams_on_memory_store_match_model() -> None:
    explore(lambda: StreamsMachine(lambda _: MemoryStore("machine")), least=20, one_in=3)


@proves("MODEL-STREAMS", "STORE-CONTRACT")
def test_streams_on_sqlite_match_model() -> None:
    def opened(folder: Path) -> Store:
        return SqliteStore.open(folder / "dragoman.db", lambda: "machine")

    explore(lambda: StreamsMachine(opened), least=8, one_in=10)


@proves("MODEL-STREAMS", "MODEL-REPLAY", "STORE-CONTRACT")
def test_streams_on_postgresql_match_model(postgres_server: str) -> None:
    explore(lambda: PostgresMachine(postgres_server), least=4, one_in=25)
