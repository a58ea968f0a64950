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
    """Who comes into question for a goal, at one moment."""

    def rank(
        self, wish: Wish, now: int, policy: Policy = ..., named: str = ...
    ) -> tuple[Candidate, ...]:
        """Everyone, the most likely first, if these rules are to be kept; where one is named, it
        goes to nobody else.
        """
        ...

    def shortlist(
        self, wish: Wish, policy: Policy, now: int, hands: Mapping[str, int] = ...
    ) -> tuple[Candidate, ...]:
        """Those whom an intent is offered to, and some whom it is not; `hands` is how much some of
        them work on at a time.
        """
        ...

    def vetoes(self, candidate: Candidate, wish: Wish, policy: Policy, now: int) -> tuple[str, ...]:
        """Why a candidate may not have it as things are; none: it may."""
        ...

    def standing(self, name: str, now: int) -> Standing | None:
        """What is known of one of them."""
        ...


class Facts(Protocol):
    """What can be looked up before the transaction; what may change is decided again inside."""

    @property
    def store(self) -> Store:
        """Where everything is kept."""
        ...

    @property
    def registry(self) -> Registry:
        """Who comes into question for a goal."""
        ...

    def task_exists(self, name: str) -> bool:
        """Whether a task has this name."""
        ...

    def is_in_progress(self, name: str) -> bool:
        """Whether somebody works on the task with this name."""
        ...

    def file_exists(self, task: str, ref: str) -> bool:
        """Whether there is such a file in the folder of the task with this AOF id."""
        ...

    @property
    def look_at_runs(self) -> Callable[[], object]:
        """Looks at the run files of all that is in progress; tells, and stops nothing."""
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
        """Whoever has this name, where there is no credential that says so."""
        ...

    def reported(self) -> Sequence[str]:
        """The AOF ids of all tasks in progress whose attempt has reported an outcome."""
        ...


def no_task(_message: Any) -> str:
    """Of an operation that is about no task in particular."""
    return ""


def nobody_else(_message: Any, _speaker: str) -> Fault | None:
    """The identity check of an operation that names nobody."""
    return None


def _always(*_: Any) -> bool:
    return True


def _never(*_: Any) -> bool:
    return False


class Bounds(Struct, frozen=True):
    """What a message may be at most, where that is not the same for all (S-LIMIT)."""

    most_bytes: int = MOST_BYTES
    any_whole: bool = False
    """Whether whole numbers may be beyond what every reader keeps: the shape says what they are."""


USUAL = Bounds()


class Operation(Struct, frozen=True):
    """One thing that can be asked for in a dialect: shape, commands and reply in one place."""

    name: str
    shape: Any
    """The msgspec type of what it is given, for doors that publish a JSON Schema."""
    read: Callable[[Any], Any]
    """A parsed JSON value in that shape, or the first Fault of it."""
    commands: Callable[[Any], Commands]
    """What it asks the core for, all or none; pure."""
    reply: Callable[[Any, Commands, Accepted], Any]
    """What the caller is told, in the dialect's own form."""
    roles: frozenset[Role]
    about: Callable[[Any], str] = no_task
    """The task that it names; whether there is one comes before who asks (S-AOF-2)."""
    identity: Callable[[Any, str], Fault | None] = nobody_else
    """What is wrong when this name says it: whoever it speaks for must be the speaker (S-ROLE)."""
    gather: Callable[[Any, Actor, Facts], Commands | Fault] | None = None
    """More commands that follow from facts outside of the transaction."""
    effect: Callable[[Any, Actor, Facts], Commands] | None = None
    """What is to follow if it can: refused, it leaves the commands as they are, and the reply says
    so."""
    is_as_good: Callable[[Any, str], bool] = _never
    """Whether an effect that was declined under this code has what it asks for all the same, so
    that there is nothing to warn of."""
    ask: Callable[[Any, Actor, Facts], Any] | None = None
    """For one that only reads: what the caller is told, or the Fault why not; no commands."""
    asks: Callable[[Any, Actor, Facts], Any] | None = None
    """For one that mostly writes: what the caller is told who only asks, or the Fault why not; None
    when the message is no question."""
    after: Callable[[Any, Actor, Facts, Any], tuple[Commands, Any]] | None = None
    """What is to be done when it is on record, outside of the transaction, and never undoes it:
    given the reply so far, what the hub notes down of it, and the reply."""
    masked: Callable[[Any], Sequence[str]] = lambda _: ()
    """What its sender is told about secrets that `gather` has taken out of it."""
    rest: Callable[[Any], Rest | None] = lambda _: None
    """What `gather` holds back of it, if it is part of a text that comes in parts."""
    odd: Callable[[Any], Iterable[str]] = lambda _: ()
    """What is odd about a message that was taken, by the reply to it: told as warnings."""
    fields: Mapping[str, str] = {}
    """The field that a refusal of the core is about -> what the message calls it."""
    looks: Callable[[Any], bool] = _always
    """Whether `gather`, `effect` or `asks` look something up for this message, so that the event
    loop should not wait for them."""
    is_for_hub: bool = False
    """Whether it is looked through by the hub that runs, and by nobody beside it: only that one
    knows all that must not be on record."""
    lingers: Callable[[Any, Any], bool] = _always
    """The same of `after`, by the message and the reply so far."""
    no_in: Callable[[Any], Refusal | None] = lambda _: None
    """The no in a reply: what was asked for is on record, and was not granted."""
    is_empty: Callable[[Any], bool] | None = None
    """Whether such an answer has nothing in it yet, so that a caller may want to wait for more."""
    wakes: str = ""
    """The family of events after which there may be something in it; empty: any."""
    bounds: Bounds = USUAL
    keeps_words: bool = True
    """Whether the ledger keeps the original words beside what follows from them; else that is all
    of them."""
    words: "Callable[[Incoming], msgspec.Raw] | None" = None
    """What the ledger keeps of the words of a call; None: all of them (`kept_words`)."""
    summary: str = ""
    """When to use it, for doors that offer tools to agents; empty: it is not offered as one."""

    def field(self, path: str) -> str:
        """What the message calls the field that a refusal of the core is about; empty: it has none
        of that name.
        """
        name, bracket, index = path.partition("[")
        called = self.fields.get(name, "")
        return called and f"{called}{bracket}{index}"


def as_called(shape: type[Struct]) -> dict[str, str]:
    """The fields of a shape, where the core calls them the same."""
    return {name: name for name in shape.__struct_fields__}


class Heard(Struct, frozen=True):
    """A message that a dialect takes for its own, understood or not."""

    kind: str
    """What the message calls itself."""
    said: msgspec.Raw
    sender: str = ""
    """Who sends it, by its own words; empty: it does not say so in a way that can be used."""
    target: str = ""
    """The task that it names."""
    operation: Operation | None = None
    message: Any = None
    """What `operation` is given."""
    content: bytes = b""
    """What tells it from every other message; empty: two equal ones are two messages."""
    sent_at: int | None = None
    """When it was sent, by its own word."""
    fault: Fault | None = None
    """Why it is not carried out; else there is an operation."""
    line_up: str = ""
    """Messages of one caller that share this have to keep their order; empty: those about the same
    task do, and one about none keeps it with all."""


class Linted(Struct, frozen=True):
    """What is to be said about a message that nobody sends: a check, not a request."""

    ok: bool
    type: str
    message: Any
    issues: tuple[dict[str, str], ...] = ()
    """Each a path and a reason."""
    kind: str = ""
    """Which of the dialect's kinds it was taken for; empty: the one that its type is."""


Linter = Callable[[Any, str, bool], Linted]
"""Takes a parsed JSON value, the kind that it must be of (empty: any), and whether to be strict."""
Listener = Callable[[Incoming], Heard | None]
Renderer = Callable[..., Any]
"""Takes an event and what its dialect needs beside it."""


class Outlook(Struct, frozen=True):
    """What of a handoff no entry tells."""

    obstacles: tuple[str, ...] = ()
    """What it would meet at its next step: parts that a draft lacks, files that are not there."""
    doubts: tuple[str, ...] = ()
    """What it would meet later on, if that stays as it is: files that a draft names."""
    items: Mapping[str, bool] = {}
    """Item of a work queue outside that has an answer -> whether it is where the work is by now."""


class Dialect(Struct, frozen=True):
    """A language that agents speak."""

    name: str
    operations: tuple[Operation, ...]
    hear: Listener
    """A message of this dialect, understood or faulty; None: it is somebody else's."""
    lint: Linter
    refusals: Mapping[str, str]
    """Our refusal code -> the dialect's own, for every code that there is."""
    render: Mapping[type[AnyEvent], Renderer | None]
    """Event -> its rendering, for every event that there is; None: silent on purpose."""
    kinds: tuple[str, ...] = ()
    """The types of message that it has, for whoever asks `lint` for one."""
    carriers: Mapping[str, Operation] = {}
    """A kind -> the operation by which it comes, for kinds whose bounds are not those of all."""
    is_lenient: bool = False
    """Whether `lint`, unless it is strict, takes any text and lists what cannot be read of it."""
    says_no: Callable[[Any, Refusal, Actor, Facts], Any] | None = None
    """How it tells a refusal of a message (None: one that was not understood) in a form of its own;
    None: by code and detail, as every door does."""
    schema: Callable[[], Mapping[str, Any]] | None = None
    """The JSON Schema of what it hands over, for whoever publishes it."""
    bounds: Bounds = USUAL
    """Of its largest message. What is larger than usual is handed to `hear` all the same, which has
    to find out cheaply whether it is its own."""
    prefix: bytes = b""
    """What may stand before the JSON of a message."""
    known_by: str = ""
    """What `hear` goes by, in a few words, for whoever sends something that is nobody's."""
    outlook: Callable[[Handoff, Facts], Outlook] = lambda _, __: Outlook()
    """What is to be found of a handoff that its entries do not tell, for whoever asks why it waits:
    files are read and others are asked for it."""


def find_operation(dialects: Sequence[Dialect], name: str) -> tuple[Dialect, Operation] | None:
    """The operation of this name and whose it is."""
    for dialect in dialects:
        for operation in dialect.operations:
            if operation.name == name:
                return dialect, operation
    return None


def longest_message(dialects: Sequence[Dialect]) -> int:
    """How many bytes a message may have in any of these dialects."""
    return max(dialect.bounds.most_bytes for dialect in dialects)


def lint_text(dialect: Dialect, text: bytes, kind: str, *, strict: bool) -> Linted:
    """What a dialect says about one JSON value in bytes; what is no JSON is one finding."""
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
    """The same, and whether the door would take so long a message of its kind."""
    carrier = dialect.carriers.get(linted.kind or linted.type)
    most = dialect.bounds.most_bytes if carrier is None else carrier.bounds.most_bytes
    if len(incoming.text) <= most:
        return linted
    found = {"path": "", "reason": f"it has more than {most} bytes, and no more are taken"}
    return replace(linted, ok=False, issues=(*linted.issues, found))
