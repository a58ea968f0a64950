"""Operations and dialects: the tables that every surface serves, and how a message is recognised.

A surface iterates over the dialects that it is handed and names none of them. Everything here is
pure; `engine.router` connects it to the hub.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.agent import Reputation
from dragoman.core.base import Role
from dragoman.core.errors import Refusal
from dragoman.core.event_table import AnyEvent
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import check_id
from dragoman.core.intent.candidate import Candidate, Policy, Requirements
from dragoman.engine.ports import Store
from dragoman.engine.raw_message import RawMessage
from dragoman.engine.redaction_carry_over import CarryOver
from dragoman.engine.request import Commands, Committed
from dragoman.text.error_messages import shape_fault
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError

# --- faults of a message ----------------------------------------------------------------------


class Fault(Struct, frozen=True):
    """The reason why a message is not accepted: one of our refusal codes, and the field that is
    wrong."""

    code: str
    reason: str
    path: str = ""
    is_sentence: bool = False
    """True if the reason names its subject itself, so that the path is not put before it."""

    @property
    def detail(self) -> str:
        """The sentence for a person."""
        return self.reason if self.is_sentence or not self.path else f"{self.path}: {self.reason}"


def fault_from_refusal(refusal: Refusal, path: str = "") -> Fault:
    """The fault that a refusal of the core stands for, perhaps of one field."""
    return Fault(refusal.code, refusal.detail, path, is_sentence=True)


def validate_shape(value: Any, shape: Any, code: str = "invalid_field") -> Any:
    """Convert a parsed JSON value to its shape, or return the fault of it."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        return Fault(code, fault.reason, fault.path)


def require_id(read: Any, field: str, kind: str) -> Any:
    """The parsed message, unless its id is empty: to have an id assigned, leave the field out."""
    if isinstance(read, Fault) or getattr(read, field) != "":
        return read
    malformed = check_id("", kind)
    assert malformed is not None, "an empty id is malformed"
    return fault_from_refusal(malformed, field)


def fault_from_json_error(error: StrictJsonError) -> Fault:
    """The fault of a message that is not valid JSON."""
    code = "message_too_large" if error.too_large else "invalid_json"
    return Fault(code, error.reason, error.path)


# --- facts from outside of the transaction ----------------------------------------------------


class CandidateRegistry(Protocol):
    """Candidates for a goal, at one moment."""

    def rank(
        self, wish: Requirements, now: int, policy: Policy = ..., named: str = ...
    ) -> tuple[Candidate, ...]:
        """All candidates, the most likely first, ranked by who may have it under this policy; where
        one is named, nobody else may."""
        ...

    def shortlist(
        self, wish: Requirements, policy: Policy, now: int, capacities: Mapping[str, int] = ...
    ) -> tuple[Candidate, ...]:
        """Candidates to whom an intent is offered, and some to whom it is not; `capacities` is how
        many tasks some of them work on at a time."""
        ...

    def vetoes(
        self, candidate: Candidate, wish: Requirements, policy: Policy, now: int
    ) -> tuple[str, ...]:
        """The reasons why a candidate may not have it now; none: it may."""
        ...

    def reputation(self, name: str, now: int) -> Reputation | None:
        """The registry's record of one candidate."""
        ...


class Facts(Protocol):
    """Lookups before the transaction; what may change is decided again inside."""

    @property
    def store(self) -> Store:
        """The store to read from."""
        ...

    @property
    def registry(self) -> CandidateRegistry:
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
    def scan_run_files(self) -> Callable[[], object]:
        """Reads the run files of all tasks in progress; reports problems, and stops nothing."""
        ...

    @property
    def now(self) -> Callable[[], int]:
        """The hub's clock."""
        ...

    def tasks_held_in_session(
        self, session: str, holder: str = "", task: str = ""
    ) -> Sequence[str]:
        """The AOF ids of the tasks that are held in a session, by this agent or (empty) by any;
        only this task, if one is named.
        """
        ...

    def resolve_actor(self, name: str, via: str) -> Actor:
        """The actor of this name, where there is no credential."""
        ...

    def reported_tasks(self) -> Sequence[str]:
        """The AOF ids of all tasks in progress whose attempt has reported an outcome."""
        ...


# --- operations -------------------------------------------------------------------------------


def no_task(_message: Any) -> str:
    """The task of an operation that is about no task."""
    return ""


def no_identity_check(_message: Any, _speaker: str) -> Fault | None:
    """The identity check of an operation that names nobody."""
    return None


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


class MessageLimits(Struct, frozen=True):
    """Limits of a message that differ from the usual ones (S-LIMIT)."""

    max_bytes: int = MAX_BYTES
    allow_big_integers: bool = False
    """Accept integers beyond what every JSON reader keeps; the input type limits them."""


DEFAULT_LIMITS = MessageLimits()


class Operation(Struct, frozen=True):
    """One operation of a dialect: input type, commands and reply in one place."""

    name: str
    input_type: Any
    """The msgspec type of its input, for surfaces that publish a JSON Schema."""
    validate: Callable[[Any], Any]
    """Validate a parsed JSON value: the input, or its first Fault."""
    commands: Callable[[Any], Commands]
    """The commands for the core, all or none; pure."""
    reply: Callable[[Any, Commands, Committed], Any]
    """The reply to the caller, in the dialect's own form."""
    roles: frozenset[Role]
    task_of: Callable[[Any], str] = no_task
    """The task that the message names; its existence is checked before authorization (S-AOF-2)."""
    check_identity: Callable[[Any, str], Fault | None] = no_identity_check
    """Fault if the message speaks for somebody other than this sender (S-ROLE)."""
    gather: Callable[[Any, Actor, Facts], Commands | Fault] | None = None
    """Further commands that follow from facts outside of the transaction."""
    effect: Callable[[Any, Actor, Facts], Commands] | None = None
    """Commands to run if they are allowed: if they are refused, the others stand, and the reply
    says so."""
    effect_satisfied: Callable[[Any, str], bool] = _never
    """True if an effect that was refused with this code has nothing left to do, so that no warning
    is needed."""
    query: Callable[[Any, Actor, Facts], Any] | None = None
    """For an operation that only reads: the result, or the Fault; no commands."""
    maybe_query: Callable[[Any, Actor, Facts], Any] | None = None
    """For an operation that mostly writes: the result of a message that only reads, or the Fault;
    None if the message writes."""
    follow_up: Callable[[Any, Actor, Facts, Any], tuple[Commands, Any]] | None = None
    """Work after the commit, outside of the transaction, which never undoes it: given the reply so
    far, it returns commands that record it, and the reply."""
    redaction_warnings: Callable[[Any], Sequence[str]] = lambda _: ()
    """Warnings for the sender about secrets that `gather` has masked."""
    carry_over: Callable[[Any], CarryOver | None] = lambda _: None
    """The carry-over that `gather` holds back, if the message is a chunk of a text."""
    warnings: Callable[[Any], Iterable[str]] = lambda _: ()
    """Warnings about an accepted message, from the reply to it."""
    field_names: Mapping[str, str] = {}
    """The field that a refusal of the core is about -> its name in the message."""
    needs_lookup: Callable[[Any], bool] = _always
    """True if `gather`, `effect` or `maybe_query` look something up for this message, so that the
    event loop should not wait for them."""
    hub_only: bool = False
    """True if only the running hub may redact it, which knows all secrets; other processes forward
    it."""
    blocking_after: Callable[[Any, Any], bool] = _always
    """True if `follow_up` blocks for this message and reply."""
    refusal_in_reply: Callable[[Any], Refusal | None] = lambda _: None
    """The refusal inside a reply: the request was recorded, but not granted."""
    is_empty_reply: Callable[[Any], bool] | None = None
    """True for a query result that is still empty, so that a caller may want to wait."""
    wakes_on: str = ""
    """The family of events after which the result may no longer be empty; empty: any."""
    limits: MessageLimits = DEFAULT_LIMITS
    stores_text: bool = True
    """False if the ledger keeps only the resulting entries, without the original text."""
    stored_text: "Callable[[RawMessage], msgspec.Raw] | None" = None
    """The text that the ledger keeps of a call; None: all of it (`stored_text`)."""
    summary: str = ""
    """Advice on when to use it, for tools of agents; empty: not offered as a tool."""

    def field_in_message(self, path: str) -> str:
        """The message's name of the field that a refusal of the core is about; empty: none."""
        name, bracket, index = path.partition("[")
        field_name = self.field_names.get(name, "")
        return field_name and f"{field_name}{bracket}{index}"


def same_field_names(shape: type[Struct]) -> dict[str, str]:
    """Field names of a shape that are the same in the core."""
    return {name: name for name in shape.__struct_fields__}


# --- dialects ---------------------------------------------------------------------------------


class ParsedMessage(Struct, frozen=True):
    """A message that a dialect has recognised, valid or not."""

    kind: str
    """The type of the message, as it states it."""
    original_text: msgspec.Raw
    sender: str = ""
    """The sender, as the message states it; empty: none that is valid."""
    target: str = ""
    """The task that it names."""
    operation: Operation | None = None
    message: Any = None
    """The input of `operation`."""
    dedup_content: bytes = b""
    """Content that identifies the message; empty: two equal ones are two messages."""
    sent_at: int | None = None
    """Time of sending, as it states."""
    fault: Fault | None = None
    """The reason why it is not accepted; without one there is an operation."""
    ordering_key: str = ""
    """Messages of one caller that share this keep their order; empty: those about the same task do,
    and a message without a task keeps its order with all."""


class LintResult(Struct, frozen=True):
    """The result of linting a message, which submits nothing."""

    ok: bool
    type: str
    message: Any
    issues: tuple[dict[str, str], ...] = ()
    """Each has a path and a reason."""
    kind: str = ""
    """The message type that was assumed; empty: its own `type`."""


Linter = Callable[[Any, str, bool], LintResult]
"""Takes a parsed JSON value, its required type (empty: any), and whether to be strict."""

Parser = Callable[[RawMessage], ParsedMessage | None]

Renderer = Callable[..., Any]
"""Takes an event, and what its dialect needs beside it."""


class HandoffFindings(Struct, frozen=True):
    """Findings about a handoff that its entries do not have."""

    obstacles: tuple[str, ...] = ()
    """Problems of its next step: missing parts of a draft, missing files."""
    risks: tuple[str, ...] = ()
    """Problems to be expected later, if nothing changes: files that a draft names."""


class Dialect(Struct, frozen=True):
    """A protocol that agents speak: its operations, and how its messages are recognised."""

    name: str
    operations: tuple[Operation, ...]
    parse: Parser
    """Parse a message of this dialect, valid or not; None: it is not of this dialect."""
    lint: Linter
    refusal_codes: Mapping[str, str]
    """Our refusal code -> the dialect's own; complete."""
    renderers: Mapping[type[AnyEvent], Renderer | None]
    """Event -> its rendering; complete. None: not rendered on purpose."""
    message_types: tuple[str, ...] = ()
    """Its message types, as `lint` takes them."""
    operation_of_type: Mapping[str, Operation] = {}
    """Message type -> the operation that takes it, where limits differ from the usual ones."""
    lints_any_text: bool = False
    """True if `lint`, unless it is strict, accepts any text and lists what cannot be parsed."""
    format_error: Callable[[Any, Refusal, Actor, Facts], Any] | None = None
    """Formats a refusal of a message (None: it could not be parsed) in the dialect's own form;
    None: every surface shows code and detail."""
    schema: Callable[[], Mapping[str, Any]] | None = None
    """The JSON Schema of the document that it transfers."""
    limits: MessageLimits = DEFAULT_LIMITS
    """Limits of its largest message. `parse` is called for longer ones than usual too, and has to
    recognise its own cheaply."""
    prefix: bytes = b""
    """Bytes that may stand before the JSON of a message."""
    recognition_hint: str = ""
    """Criteria by which its messages are recognised, in a few words, for the sender of one that no
    dialect takes."""
    diagnose: Callable[[Handoff, Facts], HandoffFindings] = lambda _, __: HandoffFindings()
    """Findings about a handoff from outside of the ledger, for its diagnosis: files are read."""


# --- lookups ----------------------------------------------------------------------------------


def find_operation(dialects: Sequence[Dialect], name: str) -> tuple[Dialect, Operation] | None:
    """The operation of this name, and its dialect."""
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.name == name:
                return dialect, operation
    return None


def max_message_bytes(dialects: Sequence[Dialect]) -> int:
    """The longest message, in bytes, that any of these dialects takes."""
    return max(dialect.limits.max_bytes for dialect in dialects)
