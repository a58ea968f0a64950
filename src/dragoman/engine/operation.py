"""What a dialect is to a door: a table of operations, and how its messages are recognised.

A door iterates over the dialects that it is handed and names none of them. Everything here is pure;
`engine.interpreter` brings it to the hub.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal
from dragoman.core.events import AnyEvent, Role
from dragoman.core.offers import Candidate, Policy, Wish
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.standing import Standing
from dragoman.engine.faults import Fault
from dragoman.engine.incoming import Incoming
from dragoman.engine.ports import Store
from dragoman.engine.request import Accepted
from dragoman.engine.rests import Rest
from dragoman.text.loose_json import loosely
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError

Commands = tuple[AnyCommand, ...]


class Registry(Protocol):
    """Candidates for a goal, at one moment."""

    def rank(
        self, wish: Wish, now: int, policy: Policy = ..., named: str = ...
    ) -> tuple[Candidate, ...]:
        """All candidates, the most likely first, ranked by who may have it under this policy; where
        one is named, nobody else may."""
        ...

    def shortlist(
        self, wish: Wish, policy: Policy, now: int, hands: Mapping[str, int] = ...
    ) -> tuple[Candidate, ...]:
        """Candidates to whom an intent is offered, and some to whom it is not; `capacities` is how
        many tasks some of them work on at a time."""
        ...

    def vetoes(self, candidate: Candidate, wish: Wish, policy: Policy, now: int) -> tuple[str, ...]:
        """The reasons why a candidate may not have it now; none: it may."""
        ...

    def standing(self, name: str, now: int) -> Standing | None:
        """The registry's record of one candidate."""
        ...


class Facts(Protocol):
    """Lookups before the transaction; what may change is decided again inside."""

    @property
    def store(self) -> Store:
        """The store to read from."""
        ...

    @property
    def registry(self) -> Registry:
        """Candidates for a goal."""
        ...

    def task_exists(self, name: str) -> bool:
        """True if a task has this name."""
        ...

    def is_in_progress(self, name: str) -> bool:
        """True if the task with this name is in progress."""
        ...

    def file_exists(self, task: str, ref: str) -> bool:
        """True if there is such a file in the folder of the task with this AOF id."""
        ...

    @property
    def look_at_runs(self) -> Callable[[], object]:
        """Reads the run files of all tasks in progress; reports problems, and stops nothing."""
        ...

    @property
    def now(self) -> Callable[[], int]:
        """The hub's clock."""
        ...

    def held_in(self, session: str, holder: str = "", task: str = "") -> Sequence[str]:
        """The AOF ids of the tasks that are held in a session, by this agent or (empty) by any;
        only this task, if one is named.
        """
        ...

    def speaker(self, name: str, via: str) -> Actor:
        """The actor of this name, where there is no credential."""
        ...

    def reported(self) -> Sequence[str]:
        """The AOF ids of all tasks in progress whose attempt has reported an outcome."""
        ...


def no_task(_message: Any) -> str:
    """The task of an operation that is about no task."""
    return ""


def nobody_else(_message: Any, _speaker: str) -> Fault | None:
    """The identity check of an operation that names nobody."""
    return None


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


class Bounds(Struct, frozen=True):
    """Limits of a message that differ from the usual ones (S-LIMIT)."""

    most_bytes: int = MOST_BYTES
    any_whole: bool = False
    """Accept integers beyond what every JSON reader keeps; the input type limits them."""


USUAL = Bounds()


class Operation(Struct, frozen=True):
    """One operation of a dialect: input type, commands and reply in one place."""

    name: str
    shape: Any
    """The msgspec type of its input, for surfaces that publish a JSON Schema."""
    read: Callable[[Any], Any]
    """Validate a parsed JSON value: the input, or its first Fault."""
    commands: Callable[[Any], Commands]
    """The commands for the core, all or none; pure."""
    reply: Callable[[Any, Commands, Accepted], Any]
    """The reply to the caller, in the dialect's own form."""
    roles: frozenset[Role]
    about: Callable[[Any], str] = no_task
    """The task that the message names; its existence is checked before authorization (S-AOF-2)."""
    identity: Callable[[Any, str], Fault | None] = nobody_else
    """Fault if the message speaks for somebody other than this sender (S-ROLE)."""
    gather: Callable[[Any, Actor, Facts], Commands | Fault] | None = None
    """Further commands that follow from facts outside of the transaction."""
    effect: Callable[[Any, Actor, Facts], Commands] | None = None
    """Commands to run if they are allowed: if they are refused, the others stand, and the reply
    says so."""
    is_as_good: Callable[[Any, str], bool] = _never
    """True if an effect that was refused with this code has nothing left to do, so that no warning
    is needed."""
    ask: Callable[[Any, Actor, Facts], Any] | None = None
    """For an operation that only reads: the result, or the Fault; no commands."""
    asks: Callable[[Any, Actor, Facts], Any] | None = None
    """For an operation that mostly writes: the result of a message that only reads, or the Fault;
    None if the message writes."""
    after: Callable[[Any, Actor, Facts, Any], tuple[Commands, Any]] | None = None
    """Work after the commit, outside of the transaction, which never undoes it: given the reply so
    far, it returns commands that record it, and the reply."""
    masked: Callable[[Any], Sequence[str]] = lambda _: ()
    """Warnings for the sender about secrets that `gather` has masked."""
    rest: Callable[[Any], Rest | None] = lambda _: None
    """The carry-over that `gather` holds back, if the message is a chunk of a text."""
    odd: Callable[[Any], Iterable[str]] = lambda _: ()
    """Warnings about an accepted message, from the reply to it."""
    fields: Mapping[str, str] = {}
    """The field that a refusal of the core is about -> its name in the message."""
    looks: Callable[[Any], bool] = _always
    """True if `gather`, `effect` or `maybe_query` look something up for this message, so that the
    event loop should not wait for them."""
    is_for_hub: bool = False
    """True if only the running hub may redact it, which knows all secrets; other processes forward
    it."""
    lingers: Callable[[Any, Any], bool] = _always
    """True if `follow_up` blocks for this message and reply."""
    no_in: Callable[[Any], Refusal | None] = lambda _: None
    """The refusal inside a reply: the request was recorded, but not granted."""
    is_empty: Callable[[Any], bool] | None = None
    """True for a query result that is still empty, so that a caller may want to wait."""
    wakes: str = ""
    """The family of events after which the result may no longer be empty; empty: any."""
    bounds: Bounds = USUAL
    keeps_words: bool = True
    """False if the ledger keeps only the resulting entries, without the original text."""
    words: "Callable[[Incoming], msgspec.Raw] | None" = None
    """The text that the ledger keeps of a call; None: all of it (`stored_text`)."""
    summary: str = ""
    """When to use it, for surfaces that offer tools to agents; empty: not offered as one."""

    def field(self, path: str) -> str:
        """The message's name of the field that a refusal of the core is about; empty: none."""
        name, bracket, index = path.partition("[")
        called = self.fields.get(name, "")
        return called and f"{called}{bracket}{index}"


def as_called(shape: type[Struct]) -> dict[str, str]:
    """Field names of a shape that are the same in the core."""
    return {name: name for name in shape.__struct_fields__}


class Heard(Struct, frozen=True):
    """A message that a dialect has recognised, valid or not."""

    kind: str
    """The type of the message, as it states it."""
    said: msgspec.Raw
    sender: str = ""
    """The sender, as the message states it; empty: none that is valid."""
    target: str = ""
    """The task that it names."""
    operation: Operation | None = None
    message: Any = None
    """The input of `operation`."""
    content: bytes = b""
    """Content that identifies the message; empty: two equal ones are two messages."""
    sent_at: int | None = None
    """When it was sent, as it states."""
    fault: Fault | None = None
    """The reason why it is not accepted; without one there is an operation."""
    line_up: str = ""
    """Messages of one caller that share this keep their order; empty: those about the same task do,
    and a message without a task keeps its order with all."""


class Linted(Struct, frozen=True):
    """The result of linting a message, which submits nothing."""

    ok: bool
    type: str
    message: Any
    issues: tuple[dict[str, str], ...] = ()
    """Each has a path and a reason."""
    kind: str = ""
    """The message type that was assumed; empty: its own `type`."""


Linter = Callable[[Any, str, bool], Linted]
"""Takes a parsed JSON value, its required type (empty: any), and whether to be strict."""
Listener = Callable[[Incoming], Heard | None]
Renderer = Callable[..., Any]
"""Takes an event, and what its dialect needs beside it."""


class Outlook(Struct, frozen=True):
    """Findings about a handoff that its entries do not have."""

    obstacles: tuple[str, ...] = ()
    """Problems of its next step: missing parts of a draft, missing files."""
    doubts: tuple[str, ...] = ()
    """Problems to be expected later, if nothing changes: files that a draft names."""
    items: Mapping[str, bool] = {}
    """Item that an external work queue answers for -> True if it is where the work is."""


class Dialect(Struct, frozen=True):
    """A protocol that agents speak: its operations, and how its messages are recognised."""

    name: str
    operations: tuple[Operation, ...]
    hear: Listener
    """Parse a message of this dialect, valid or not; None: it is not of this dialect."""
    lint: Linter
    refusals: Mapping[str, str]
    """Our refusal code -> the dialect's own; complete."""
    render: Mapping[type[AnyEvent], Renderer | None]
    """Event -> its rendering; complete. None: not rendered on purpose."""
    kinds: tuple[str, ...] = ()
    """Its message types, as `lint` takes them."""
    carriers: Mapping[str, Operation] = {}
    """Message type -> the operation that takes it, where limits differ from the usual ones."""
    is_lenient: bool = False
    """True if `lint`, unless it is strict, accepts any text and lists what cannot be parsed."""
    says_no: Callable[[Any, Refusal, Actor, Facts], Any] | None = None
    """Formats a refusal of a message (None: it could not be parsed) in the dialect's own form;
    None: every surface shows code and detail."""
    schema: Callable[[], Mapping[str, Any]] | None = None
    """The JSON Schema of the document that it transfers."""
    bounds: Bounds = USUAL
    """Limits of its largest message. `parse` is called for longer ones than usual too, and has to
    recognise its own cheaply."""
    prefix: bytes = b""
    """Bytes that may stand before the JSON of a message."""
    known_by: str = ""
    """Criteria by which its messages are recognised, in a few words, for the sender of one that no
    dialect takes."""
    outlook: Callable[[Handoff, Facts], Outlook] = lambda _, __: Outlook()
    """Findings about a handoff from outside of the ledger, for its diagnosis: files are read and
    external queues are asked."""


def find_operation(dialects: Sequence[Dialect], name: str) -> tuple[Dialect, Operation] | None:
    """The operation of this name, and its dialect."""
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.name == name:
                return dialect, operation
    return None


def longest_message(dialects: Sequence[Dialect]) -> int:
    """The longest message, in bytes, that any of these dialects takes."""
    return max(dialect.bounds.most_bytes for dialect in dialects)


def lint_text(dialect: Dialect, text: bytes, kind: str, *, strict: bool) -> Linted:
    """Lint one JSON value in bytes; invalid JSON is one issue."""
    bounds = dialect.bounds
    said = text.removeprefix(dialect.prefix)
    incoming = Incoming(said, bounds.most_bytes, any_whole=bounds.any_whole)
    value = incoming.value
    if not isinstance(value, StrictJsonError):
        return _within_bounds(dialect, dialect.lint(value, kind, strict), incoming)
    found = {"path": value.path, "reason": value.reason}
    if strict or not dialect.is_lenient:
        return Linted(False, "", None, (found,))
    linted = dialect.lint(loosely(said, nothing={}), kind, False)
    return replace(linted, issues=(found, *linted.issues))


def _within_bounds(dialect: Dialect, linted: Linted, incoming: Incoming) -> Linted:
    """Add an issue if a surface would refuse a message of this type for its length."""
    carrier = dialect.carriers.get(linted.kind or linted.type)
    most = dialect.bounds.most_bytes if carrier is None else carrier.bounds.most_bytes
    if len(incoming.text) <= most:
        return linted
    found = {"path": "", "reason": f"it has more than {most} bytes, and no more are taken"}
    return replace(linted, ok=False, issues=(*linted.issues, found))
