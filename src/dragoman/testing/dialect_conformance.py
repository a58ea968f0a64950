"""Conformance of a dialect: what every dialect must do, as a class of tests to inherit from.

from dragoman.testing import Call, DialectConformance

class TestTodo(DialectConformance):
    dialect = todo_dialect.dialect()
    steps = (
        Do("olga", CreateTask("Mend the roof", id="roof", ready=True)),
        Call("ada", "todo.take", {"task": "roof"}),
    )
    messages = ("todo: ada take roof",)
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.base import Command, Role
from dragoman.core.errors import REFUSALS, Refusal
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.ids import check_dialect
from dragoman.core.notice import Notice
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.lint import lint_text
from dragoman.engine.operation import Dialect, RawMessage
from dragoman.engine.request import Rejected
from dragoman.engine.router import MessageInput, Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.translation import TranslatedMessage, read_notice_of, translate_notice
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds
from dragoman.testing.hand_hub import START

AGENTS: Mapping[str, Role] = {"ada": "agent", "bob": "agent", "olga": "orchestrator"}
"""Callers that steps can name, with their roles."""


class Call(Struct, frozen=True):
    """A call of an operation, which must be accepted."""

    by: str
    operation: str
    arguments: Mapping[str, Any] = {}


class Do(Struct, frozen=True):
    """A command that prepares the next call."""

    by: str
    command: Command


Step = Call | Do

_FOREIGN = (b"", b"Hello.", b"\xff\xfe", b'{"a":', b"{}", b"[]", b"null", b'{"hello": "world"}')
"""Messages of no dialect."""
_MALFORMED = ("[]", '"words"', "7", '{"a":')
"""Arguments that no operation takes."""


class DialectConformance:
    """Inherit in a class whose name begins with `Test`, and run pytest."""

    dialect: ClassVar[Dialect]
    steps: ClassVar[Sequence[Step]] = ()
    """Calls of each operation at least once, each of which is accepted."""
    messages: ClassVar[Sequence[MessageInput]] = ()
    """Valid messages, as agents send them."""

    def dialect_of(self, hub: Hub) -> Dialect:
        """The dialect on this hub; for one that needs a port of it, override this."""
        del hub
        return self.dialect

    def test_its_name_and_its_tables_are_valid(self) -> None:
        """Names are unique, and codes and events are those of the hub."""
        dialect = self.dialect
        assert check_dialect(dialect.name) is None, dialect.name
        times = Counter(operation.name for operation in dialect.operations)
        assert [name for name, number in times.items() if number > 1] == []
        assert set(dialect.errors.codes) <= set(REFUSALS)
        assert dialect.events <= set(EVENT_NAMES)

    def test_every_input_has_a_json_schema(self) -> None:
        """Tools and OpenAPI publish it."""
        for operation in self.dialect.operations:
            schema = msgspec.json.schema(operation.input)
            assert "$defs" in schema or schema["type"] == "object", operation.name

    def test_every_operation_accepts_a_call(self) -> None:
        """The steps name each operation, and all of them are accepted."""
        hub, router = self._open()
        for step in self.steps:
            actor = Actor(AGENTS[step.by], step.by)
            if isinstance(step, Do):
                hub.submit(actor, step.command)
            else:
                answer = router.call(step.operation, dict(step.arguments), actor)
                assert not isinstance(answer, Rejected), (step, answer)
        called = {step.operation for step in self.steps if isinstance(step, Call)}
        assert called == {operation.name for operation in self.dialect.operations}

    def test_malformed_arguments_are_refused_with_a_code_of_the_dialect(self) -> None:
        """The refusal says why."""
        _, router = self._open()
        codes = {self.dialect.errors.code(ours) for ours in REFUSALS}
        for operation in self.dialect.operations:
            for malformed in _MALFORMED:
                answer = router.call(operation.name, malformed, Actor("human", "hera"))
                assert isinstance(answer, Rejected), (operation.name, malformed, answer)
                assert answer.code in codes, (operation.name, malformed, answer)
                assert answer.detail, (operation.name, malformed)

    def test_its_messages_are_recognized_and_pass_its_lint(self) -> None:
        """A message finds its operation; a hint says how it is recognised."""
        assert self.dialect.hint
        for message in self.messages:
            raw = RawMessage(message)
            parsed = self.dialect.parse(raw)
            assert parsed is not None, message
            assert (parsed.fault, parsed.operation in self.dialect.operations) == (None, True)
            linted = lint_text(self.dialect, raw.text, "", strict=False)
            assert linted.ok, (message, linted.issues)

    def test_its_messages_stay_themselves_as_notices(self) -> None:
        """A message that is read as a notice and written again says the same."""
        dialect = self.dialect
        for message in self.messages:
            notice = read_notice_of(message, dialect)
            if isinstance(notice, Refusal):
                continue  # it says nothing to another agent
            written = translate_notice(notice, dialect.name, dialect)
            if isinstance(written, TranslatedMessage) and not written.is_notice:
                again = read_notice_of(written.message, dialect)
                assert isinstance(again, Notice), again
                assert again.kind == notice.kind, message

    def test_messages_of_no_dialect_are_left_to_others(self) -> None:
        """Whatever arrives is shown to every dialect."""
        for message in _FOREIGN:
            assert self.dialect.parse(RawMessage(message)) is None, message

    def _open(self) -> tuple[Hub, Router]:
        clock, store = ManualClock(START), MemoryStore("conformance")
        hub = Hub(Engine(store, clock, bytes(32)), SequentialIds())
        facts = StoreFacts(store, lambda _task, _ref: True, now=clock.now)
        return hub, Router(hub, (self.dialect_of(hub),), facts)
