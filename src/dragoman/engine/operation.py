"""Operations and dialects: the tables that every surface serves, and how a message is recognised.

A surface iterates over the dialects that it is handed and names none of them. Everything here is
pure; `engine.router` connects it to the hub.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from dragoman.core.actor import Actor
from dragoman.core.agent import Reputation
from dragoman.core.base import Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.core.intent.candidate import Candidate, Policy, Requirements
from dragoman.core.notice import Notice, Translation
from dragoman.engine.ports import Store
from dragoman.engine.redaction_carry_over import CarryOver
from dragoman.engine.request import Commands, Committed
from dragoman.text.error_messages import shape_fault
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError, encode_json, parse_json

# --- messages as received ---------------------------------------------------------------------

UNREADABLE_CHARS_KEPT = 1_000
"""Number of characters that are kept of a message that is not JSON, to find out the reason."""
_LOOKAHEAD_CHARS = 4_096
"""Number of further characters that are redacted: truncation must not cut a secret in two."""
_ENVELOPE_FIELDS: Final = ("payload", "message", "content")
"""Fields of an event in which a message may be wrapped."""
_UNPARSED: Final = object()


class RawMessage:
    """A message as received: bytes (JSON or CBOR), text, or an object that was parsed elsewhere.

    It is parsed when a dialect asks for its value, once for all of them.
    """

    def __init__(
        self,
        raw: bytes | str | Mapping[str, Any],
        max_bytes: int = MAX_BYTES,
        *,
        allow_big_integers: bool = False,
        value: Any = _UNPARSED,
    ) -> None:
        """`value` is the JSON value, if it is known to keep all limits."""
        self.max_bytes = max_bytes
        self.allow_big_integers = allow_big_integers
        self._fault: StrictJsonError | None = None
        self._value: Any = value
        self.text = raw if isinstance(raw, bytes) else self._encode(raw)
        if is_cbor_map(self.text):
            self._decode_cbor()

    @property
    def is_too_large(self) -> bool:
        """True if it is longer than anything that is parsed."""
        return len(self.text) > self.max_bytes

    @property
    def value(self) -> Any:
        """The JSON value, or the error that its parser found."""
        # No cached_property: before Python 3.12 all of them share a lock, so that every message
        # would wait for a long one that is parsed in a thread.
        if self._value is _UNPARSED:
            self._value = self._fault or self._parse()
        return self._value

    def _parse(self) -> Any:
        try:
            return parse_json(self.text, self.max_bytes, allow_big_integers=self.allow_big_integers)
        except StrictJsonError as fault:
            return fault

    def _decode_cbor(self) -> None:
        """Transcode to JSON, which is what the ledger keeps."""
        try:
            self.text = encode_json(parse_cbor(self.text, self.max_bytes))
        except StrictJsonError as fault:
            self._fault = fault

    def _encode(self, raw: str | Mapping[str, Any]) -> bytes:
        if isinstance(raw, str):
            # An unpaired surrogate is reported by the parser, as the broken UTF-8 that it becomes.
            return raw.encode(errors="surrogatepass")
        try:
            return encode_json(raw)
        except StrictJsonError as fault:
            self._fault = fault
            return ascii(raw)[: UNREADABLE_CHARS_KEPT + _LOOKAHEAD_CHARS].encode()


def candidate_messages(value: Any) -> Iterator[Any]:
    """A JSON value, and the values of its fields in which a message may be wrapped."""
    yield value
    if isinstance(value, dict):
        parts = cast(Mapping[str, Any], value)
        yield from (parts.get(name) for name in _ENVELOPE_FIELDS)


def truncated_text(text: bytes) -> msgspec.Raw:
    """The first characters of a text that is not JSON, as a JSON string.

    It is truncated to what is kept after its secrets are masked.
    """
    limit = UNREADABLE_CHARS_KEPT + _LOOKAHEAD_CHARS
    shown = text[: 4 * limit].decode(errors="replace")[:limit]
    return msgspec.Raw(msgspec.json.encode(shown))


def stored_text(raw: RawMessage) -> msgspec.Raw:
    """The text that the ledger keeps: all of it, or its first characters if it is very long or not
    JSON."""
    text = raw.text
    is_whole = len(text) <= MAX_BYTES and not isinstance(raw.value, StrictJsonError)
    return msgspec.Raw(text) if is_whole else truncated_text(text)


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


ALL_ROLES: Final[frozenset[Role]] = frozenset(get_args(Role))


class MessageLimits(Struct, frozen=True):
    """Limits of a message that differ from the usual ones (S-LIMIT)."""

    max_bytes: int = MAX_BYTES
    allow_big_integers: bool = False
    """Accept integers beyond what every JSON reader keeps; the input type limits them."""
    stores_arguments: bool = True
    """False: of arguments the ledger keeps only what the plan says, and nothing if there is none.
    """


DEFAULT_LIMITS = MessageLimits()


def always(*_: Any) -> bool:
    """True, for every message."""
    return True


def never(*_: Any) -> bool:
    """False, for every message."""
    return False


class Answer(Struct, frozen=True):
    """A reply in the dialect's own form, with more than that for the router."""

    body: Any
    warnings: Iterable[str] = ()
    refusal: Refusal | None = None
    """The refusal inside the body: the request was recorded, but not granted."""
    commands: Commands = ()
    """Commands that record what a follow-up has done."""


class OfferAnswer(Struct, frozen=True):
    """Commands by which a message answers an offer of work to its sender."""

    commands: Commands
    is_work: bool = False
    """True if the message is work, too, and has its own meaning afterwards."""


AnswerPlace = Literal["none", "commands", "effect", "own effect", "before"]
"""Place of the commands of an answer in the plan of its message: none, because it answers nothing;
with its commands, all or none; in its effect; in its effect, if it has one of its own; or before
its commands, which are run alone where the answer is refused. Planning reads the store then, which
`needs_io` has to say."""


class Plan(Struct, frozen=True):
    """Everything that the hub shall do for a message: one value that the dialect builds."""

    commands: Commands = ()
    """All or none."""
    effect: Commands = ()
    """Commands to run if they are allowed: if they are refused, the others stand, and the reply
    says so."""
    effect_satisfied_by: tuple[str, ...] = ()
    """Refusal codes of the effect after which nothing is left to do, so that no warning is needed.
    """
    follow_up: Callable[[Any], Any] | None = None
    """Work after the commit, outside of the transaction, which never undoes it: given the reply so
    far, it returns the reply, or an Answer."""
    follow_up_blocks: Callable[[Any], bool] = always
    """True if `follow_up` blocks for this reply."""
    carry_over: CarryOver | None = None
    """The chunk that the only command records, if the message is one of a text in chunks."""
    warnings: Sequence[str] = ()
    """Warnings for the sender about secrets that were masked already."""
    stored_text: msgspec.Raw | msgspec.UnsetType | None = None
    """The text that the ledger keeps; UNSET: none; None: the message as it was received."""
    field_names: Mapping[str, str] = {}
    """The field that a refusal of the core is about -> its name in the message."""
    fallback: "Plan | None" = None
    """The plan to carry out instead, if this one is refused."""

    def has_room_for_answer(self, place: AnswerPlace) -> bool:
        """True if the message may answer an offer: one without an effect does not by an effect."""
        return place != "none" and (place != "own effect" or bool(self.effect))

    def with_answer(self, answer: OfferAnswer, place: AnswerPlace) -> "Plan":
        """The plan of a message that answers an offer of work, too."""
        commands, effect = (self.commands, self.effect) if answer.is_work else ((), ())
        if place in ("effect", "own effect"):
            return replace(self, effect=answer.commands + effect)
        if place == "commands":
            return replace(self, commands=answer.commands + commands)
        alone = replace(self, effect=effect)
        return replace(alone, commands=answer.commands + self.commands, fallback=alone)

    def field_in_message(self, path: str) -> str:
        """The message's name of the field that a refusal of the core is about; empty: none."""
        name, bracket, index = path.partition("[")
        field_name = self.field_names.get(name, "")
        return field_name and f"{field_name}{bracket}{index}"


class Operation(Struct, frozen=True, kw_only=True):
    """Something that a caller can do in a dialect; HTTP, MCP, `call` and OpenAPI serve it."""

    name: str
    input: Any
    """The msgspec type of its input, published as JSON Schema."""
    roles: frozenset[Role]
    plan: Callable[[Any, Actor, Facts], Any]
    """Plans a valid input of an admitted sender: a Plan, or a Fault. Any other value is the result
    of a query, which submits nothing."""
    reply: Callable[[Any, Commands, Committed], Any] = lambda _, __, committed: committed
    """The reply to the caller in the dialect's own form, or an Answer."""
    parse: Callable[[Any], Any] | None = None
    """Parses a JSON value to the input, or its first Fault; None: the shape of the input says all.
    """
    target: Callable[[Any], str] = lambda _: ""
    """The task that an input names; its existence is checked before authorization (S-AOF-2)."""
    needs_io: Callable[[Any, Actor], bool] = never
    """True if `plan` reads the store or files for this input: the event loop does not wait for it.
    """
    limits: MessageLimits = DEFAULT_LIMITS
    answer_place: AnswerPlace = "none"
    """Place of the commands by which such a message answers an offer of work to its sender."""
    summary: str = ""
    """Advice on when to use it, for tools of agents; empty: not offered as a tool."""

    def read(self, value: Any) -> Any:
        """Parse a JSON value to the input, or return its first Fault."""
        return validate_shape(value, self.input) if self.parse is None else self.parse(value)


class LongPoll(Struct, frozen=True):
    """Waiting for a query whose result is still empty."""

    is_empty: Callable[[Any], bool]
    event_family: str = ""
    """The family of events after which the result may no longer be empty; empty: any."""


class QueryOperation(Operation, frozen=True, kw_only=True):
    """An operation that only reads: nothing of it is recorded, not even a refusal."""

    roles: frozenset[Role] = ALL_ROLES
    wait: LongPoll | None = None


def query_operation(
    name: str,
    shape: Any,
    query: Callable[[Any, Actor, Facts], Any],
    summary: str = "",
    wait: LongPoll | None = None,
    parse: Callable[[Any], Any] | None = None,
) -> QueryOperation:
    """Build a read-only operation that every role may call."""
    return QueryOperation(
        name=name, input=shape, plan=query, summary=summary, wait=wait, parse=parse
    )


def same_field_names(shape: type[Struct]) -> dict[str, str]:
    """Field names of a shape that are the same in the core."""
    return {name: name for name in shape.__struct_fields__}


# --- dialects ---------------------------------------------------------------------------------


class ParsedMessage(Struct, frozen=True):
    """A message that a dialect has recognised, valid or not."""

    kind: str
    """The type of the message, as it states it."""
    original_text: msgspec.Raw | msgspec.UnsetType
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


class Linter(Struct, frozen=True):
    """The lint of a dialect: what it checks of a message that is not sent."""

    check: Callable[[Any, str, bool], LintResult]
    """Takes a parsed JSON value, its required type (empty: any), and whether to be strict."""
    message_types: tuple[str, ...] = ()
    """The types that may be required."""
    operation_of_type: Mapping[str, Operation] = {}
    """Message type -> the operation that takes it, where limits differ from the usual ones."""
    accepts_any_text: bool = False
    """True if `check`, unless it is strict, accepts any text and lists what cannot be parsed."""
    prefix: bytes = b""
    """Bytes that may stand before the JSON of a message."""
    schema: Callable[[], Mapping[str, Any]] | None = None
    """The JSON Schema of the document that the dialect transfers."""


Parser = Callable[[RawMessage], ParsedMessage | None]


class Errors(Struct, frozen=True):
    """The refusals of a dialect."""

    codes: Mapping[str, str] = {}
    """Our refusal code -> the dialect's own, where they differ."""
    format: Callable[[Any, Refusal, Actor, Facts], Any] | None = None
    """Formats a refusal of a message (None: it could not be parsed) in the dialect's own form;
    None: every surface shows code and detail."""

    def code(self, ours: str) -> str:
        """The dialect's code for one of our refusal codes."""
        return self.codes.get(ours, ours)


OUR_ERRORS = Errors()


def no_notice(_: Any) -> Notice | None:
    """Nothing: the messages of this dialect are not translated."""
    return None


def untranslated(_: Notice) -> Translation:
    """Nothing: notices are not translated to this dialect."""
    return Translation(None, reason="this dialect does not translate notices")


class Dialect(Struct, frozen=True):
    """A protocol that agents speak: its operations, and how its messages are recognised."""

    name: str
    operations: tuple[Operation, ...]
    parse: Parser
    """Parse a message of this dialect, valid or not; None: it is not of this dialect. It is called
    for messages longer than usual if an operation takes them, and has to recognise its own cheaply.
    """
    version: str = "1"
    """Version of the messages that it writes."""
    hint: str = ""
    """Criteria by which its messages are recognised, in a few words, for the sender of one that no
    dialect takes."""
    lint: Linter | None = None
    """None: a message is parsed, and its fault shown."""
    errors: Errors = OUR_ERRORS
    events: frozenset[type[Any]] = frozenset()
    """The events of the ledger that concern it."""
    to_notice: Callable[[Any], Notice | None] = no_notice
    """Reads a parsed message as a notice; None: it says nothing to another agent."""
    from_notice: Callable[[Notice], Translation] = untranslated
    """Writes a notice as a message of this dialect, with its losses."""
    answer_offer: Callable[[Notice, Actor, Facts], OfferAnswer | None] | None = None
    """Finds the answer to an offer of this dialect in a notice of any other one; None: it makes no
    offers that others answer."""
    limits: MessageLimits = DEFAULT_LIMITS
    """The limits of its largest message; they follow from its operations."""

    def is_spoken_as(self, entry: str) -> bool:
        """True if an agent that speaks this, with a version or without, reads its messages."""
        return entry in (self.name, f"{self.name}/{self.version}")

    def __post_init__(self) -> None:
        limits = [operation.limits for operation in self.operations] or [DEFAULT_LIMITS]
        largest = MessageLimits(
            max(one.max_bytes for one in limits),
            allow_big_integers=any(one.allow_big_integers for one in limits),
        )
        force_setattr(self, "limits", largest)


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
