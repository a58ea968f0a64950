"""`dragoman trace`: import a coding agent's own record of a session as turns and events."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from dragoman.core.agent import SAOP_ROLES
from dragoman.core.errors import Refusal, Refused
from dragoman.core.ids import is_task_name, quote_name
from dragoman.core.trace import RecordTrace
from dragoman.engine.facts import StoreFacts
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.traces import TurnView, attempts_with_turns, trace_page, turn_page
from dragoman.engine.request import Committed
from dragoman.surfaces.cli.command import CliCommand, argument, option
from dragoman.surfaces.cli.context import (
    CommandContext,
    CommandResult,
    open_source,
    raise_usage_error,
)
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen

if TYPE_CHECKING:
    from dragoman.core.actor import Actor
    from dragoman.engine.operation import Plan
    from dragoman.engine.redaction_carry_over import BatchCarryOvers
    from dragoman.protocols.saop.capture.transcript import (
        CapturedMessage,
        CaptureTarget,
        Transcript,
    )

# --- sending ----------------------------------------------------------------------------------

_MAX_CONSECUTIVE_REFUSALS: Final = 3
"""After this many refusals in a row, the rest would be refused as well."""

_SENDER_REFUSALS: Final = frozenset(
    {"identity_mismatch", "not_authorized", "unauthorized_agent", "lease_lost", "task_not_found"}
)
"""Refusals of the sender, not of the message: the rest would be refused as well."""


class SendResult(Struct, frozen=True):
    """A recorded message, or its refusal."""

    label: str
    position: int = 0
    masked: bool = False
    refusal: Refusal | None = None


class Tally(Struct):
    """Counts of what was sent, recorded and refused."""

    start_position: int
    """Ledger position before the import."""
    recorded: Counter[str] = field(default_factory=Counter[str])
    new: int = 0
    masked: int = 0
    refused: list[SendResult] = []
    consecutive_refusals: int = 0

    def add(self, kind: str, sent: SendResult) -> None:
        """Count a result."""
        if sent.refusal is not None:
            self.refused.append(sent)
            self.consecutive_refusals += (
                _MAX_CONSECUTIVE_REFUSALS if sent.refusal.code in _SENDER_REFUSALS else 1
            )
            return
        self.consecutive_refusals = 0
        self.recorded[kind] += 1
        self.new += self.is_new(sent)
        self.masked += sent.masked

    def is_new(self, sent: SendResult) -> bool:
        """Tell whether the message was not recorded before."""
        return sent.position > self.start_position

    @property
    def should_stop(self) -> bool:
        """Tell whether sending more is pointless."""
        return self.consecutive_refusals >= _MAX_CONSECUTIVE_REFUSALS


class TraceSender:
    """Records captured turns and events of one task, on behalf of an actor."""

    def __init__(
        self,
        directory: "DataDirectory",
        actor: "Actor",
        task: str,
        earlier_turns: Mapping[int, "TurnView"],
    ) -> None:
        """`earlier_turns`: turns recorded in earlier attempts, by their number."""
        from dragoman.engine.operation import find_operation

        operation = find_operation(directory.router.dialects, "saop.event")
        assert operation is not None, "SAOP is spoken everywhere"
        self._directory = directory
        self._actor = actor
        self._task = task
        self._earlier_turns = earlier_turns
        self._event_operation = operation[1]
        self.tally = Tally(directory.hub.store.head())

    def send(self, captured: Sequence["CapturedMessage"]) -> Iterator[SendResult]:
        """Send messages in order and count them; stops early when everything is refused."""
        for kind, run in groupby(captured, key=lambda result: result.kind):
            batch = list(run)
            for one in self._send_events(batch) if kind == "event" else map(self._send_turn, batch):
                self.tally.add(kind, one)
                yield one
                if self.tally.should_stop:
                    return

    def _send_turn(self, captured: "CapturedMessage") -> SendResult:
        from dragoman.engine.request import Rejected

        index: int = captured.message["turn_index"]
        label = f"turn {index}"
        if index in self._earlier_turns:
            return SendResult(
                label, self._earlier_turns[index].position, self._earlier_turns[index].masked
            )
        answer = self._directory.router.call("saop.turn", captured.message, self._actor)
        if isinstance(answer, Rejected):
            return SendResult(label, refusal=Refusal(answer.code, answer.detail))
        reply: Any = answer.reply
        return SendResult(label, reply["position"], reply["masked"])

    def _send_events(self, run: Sequence["CapturedMessage"]) -> Iterator[SendResult]:
        """Record events in one transaction; if one is refused, each in its own."""
        prepared = [self._prepare_event(one) for one in run]
        try:
            done = self._submit(prepared)
        except Refused:
            yield from map(self._send_single, prepared)
            return
        for one, receipt in zip(prepared, done.receipts, strict=True):
            yield SendResult(one.name, receipt.position, receipt.masked)

    def _send_single(self, prepared: "_PreparedEvent") -> SendResult:
        try:
            (receipt,) = self._submit([prepared]).receipts
        except Refused as refused:
            return SendResult(prepared.name, refusal=refused.refusal)
        return SendResult(prepared.name, receipt.position, receipt.masked)

    def _submit(self, prepared: Sequence["_PreparedEvent"]) -> Committed:
        """Submit to the hub, wherever it runs; carry-over of thoughts is stored here, first."""
        from dragoman.engine.redaction_carry_over import BatchCarryOvers

        carry_overs = BatchCarryOvers(self._is_recorded)
        commands = [self._build_command(one, carry_overs) for one in prepared]
        carry_overs.save()
        return self._directory.hub.submit(self._actor, *commands)

    def _build_command(
        self, prepared: "_PreparedEvent", carry_overs: "BatchCarryOvers"
    ) -> RecordTrace:
        """Command that records the event under this task, which its session need not hold."""
        (command,), chunk = prepared.plan.commands, prepared.plan.carry_over
        if chunk is not None:
            command, carry_over = carry_overs.redact(chunk)
            if not self._is_recorded(chunk.event):
                carry_overs.add(chunk, carry_over)
        assert isinstance(command, RecordTrace), "nothing else keeps an event"
        return replace(command, task=self._task)

    def _is_recorded(self, event: str) -> bool:
        return self._directory.hub.store.trace_event(event) is not None

    def _prepare_event(self, captured: "CapturedMessage") -> "_PreparedEvent":
        facts = StoreFacts(self._directory.hub.store, lambda _task, _ref: False)
        sent = self._event_operation.read(captured.message)
        return _PreparedEvent(
            _describe_event(captured), self._event_operation.plan(sent, self._actor, facts)
        )


class _PreparedEvent(Struct, frozen=True):
    """A parsed event, and the plan that records it."""

    name: str
    plan: "Plan"


def _describe_event(captured: "CapturedMessage") -> str:
    """Short description of an event."""
    payload: dict[str, Any] = captured.message["payload"]
    return " ".join(filter(None, (payload["type"], payload.get("tool", ""))))


# --- command ----------------------------------------------------------------------------------

_BATCH_SIZE = 200
"""Number of messages that are sent together."""

_MAX_LINES_SHOWN = 5


def trace(
    context: CommandContext,
    file: Annotated[Path, argument("FILE", "The session file, or spans.")],
    *,
    task: Annotated[str, option("--task", "ID", "The task that it is of.")] = "",
    role: Annotated[
        Literal["researcher", "architect", "developer", "reviewer"] | None,
        option("--role", "", "The SAOP role of the agent; else that of --as, else developer."),
    ] = None,
    session: Annotated[
        str,
        option(
            "--session",
            "NAME",
            "The agent's session; else that of its attempt, else the one in the file.",
        ),
    ] = "",
    kind: Annotated[
        Literal["claude-code", "codex", "otlp"] | None,
        option("--format", "", "What the file is; else by its lines."),
    ] = None,
    follow: Annotated[
        bool, option("--follow -f", "", "Go on as the file grows; Ctrl-C ends it.")
    ] = False,
    close: Annotated[
        bool, option("--close", "", "Take the last turn too, though it does not look finished.")
    ] = False,
) -> CommandResult | None:
    """Import the record of a coding agent's work.

    It reads session files of Claude Code and of Codex, and OpenTelemetry spans (OTLP/JSON), and
    records what the agent thought, did and observed as turns and events of a task. What was
    imported before is not imported again, so you can run it again when the file has grown. Secrets
    are masked on the way in.

    \b
    Examples:
      dragoman trace ~/.claude/projects/-home-ada-parser/7c1e6f0a.jsonl --task T-1 --as ada
      dragoman trace rollout.jsonl --task T-1 --role reviewer --follow
    """
    if not task:
        raise_usage_error("say which task the session is of, with --task ID")
    if not is_task_name(task):
        raise_usage_error(f"{quote_name(task)} is not the name of a task: correct --task")
    from dragoman.protocols.saop.capture.transcript import CaptureTarget, Transcript

    with open_source(str(file)) as opened, context.open_for_writing() as directory:
        saop_role = role or _default_role(directory, context.acting_agent())
        subject = CaptureTarget(task, saop_role, session or _lease_session(directory, task))
        earlier = EarlierImport(directory.hub.store, task, has_chosen_session=bool(session))
        transcript = Transcript(subject, directory.hub.clock.now(), kind or "", earlier)
        sender = TraceSender(
            directory, context.actor(directory, context.acting_agent()), task, earlier.turns
        )
        lines = read_lines(opened, file, context.wait if follow else None)
        captured = _parse_lines(transcript, lines, file, closes=close)
        deferred = list["CapturedMessage"]()
        first_batches = _until_task_exists(
            captured, deferred, lambda: _task_exists(directory, task)
        )
        for batch in chain(first_batches, _batches(captured, 1 if follow else _BATCH_SIZE)):
            for sent in sender.send(batch):
                _print_sent(context, sender.tally, sent, is_reported=follow)
            if sender.tally.should_stop:
                break
    if not transcript.kind:
        raise_usage_error(_unrecognized_file(file, transcript.lines))
    if kind and not transcript.has_content:
        raise_usage_error(
            f"{file} holds nothing of {_describe_format(kind)}: is --format the right one?"
        )
    return _make_result(subject, transcript, sender.tally, len(deferred))


def _unrecognized_file(file: Path, lines: int) -> str:
    if not lines:
        return f"{file} is empty: import it when its session has begun"
    return f"{file} is no session file that is known here: name its --format"


def _task_exists(directory: DataDirectory, task: str) -> bool:
    from dragoman.engine.queries.tasks import find_task

    return not isinstance(find_task(directory.hub.store, task), Refusal)


def _default_role(directory: DataDirectory, speaker: str) -> str:
    """SAOP role: the registered one of the actor, else developer."""
    from dragoman.engine.queries.agents import find_agent

    record = find_agent(directory.hub.store, speaker) if speaker else None
    if record is not None and record.saop_role:
        return record.saop_role
    return speaker if speaker in SAOP_ROLES else "developer"


def _lease_session(directory: DataDirectory, task: str) -> str:
    """Session of the task's lease, if it is held and the session has a name."""
    from dragoman.engine.queries.tasks import find_task

    found = find_task(directory.hub.store, task)
    return "" if isinstance(found, Refusal) or found.lease is None else found.lease.session


def _parse_lines(
    transcript: "Transcript", lines: Iterator[bytes | None], file: Path, *, closes: bool
) -> Iterator["CapturedMessage"]:
    """Parse lines into messages; a document over many lines is parsed as one."""
    for line in lines:
        if line is None:
            if transcript.is_finished:
                yield from transcript.close()
            continue
        if transcript.lines == 0 and not line.rstrip().endswith(b"}"):
            yield from transcript.feed(read_document(file))
            break
        yield from transcript.feed(line)
    if closes or transcript.is_finished:
        yield from transcript.close()


def _until_task_exists(
    captured: Iterator["CapturedMessage"],
    deferred: list["CapturedMessage"],
    task_exists: Callable[[], bool],
) -> Iterator[list["CapturedMessage"]]:
    """Send turns one by one until the first has created the task; then the deferred events.

    Events before that are kept in `deferred`: recorded earlier they would belong to no task.
    """
    while not task_exists():
        for message in captured:
            if message.kind == "turn":
                yield [message]
                break
            deferred.append(message)
        else:
            return
    while deferred:
        yield deferred[:_BATCH_SIZE]
        del deferred[:_BATCH_SIZE]


def _batches(captured: Iterator["CapturedMessage"], size: int) -> Iterator[list["CapturedMessage"]]:
    while part := list(islice(captured, size)):
        yield part


def _print_sent(
    context: CommandContext, tally: Tally, sent: SendResult, *, is_reported: bool
) -> None:
    """Print a refusal, and with --follow each new message."""
    if sent.refusal is not None:
        reason = f"{sent.refusal.code}, {sent.refusal.detail}"
        context.err.line((f"{sent.label} was refused: ", "yellow"), reason)
    elif is_reported and tally.is_new(sent):
        data = {"what": sent.label, "position": sent.position, "masked": sent.masked}
        context.print_result(
            CommandResult(data, lambda screen: screen.line(f"{sent.position:>6}  {sent.label}"))
        )
        context.out.flush()


def _make_result(
    subject: "CaptureTarget", transcript: "Transcript", tally: Tally, deferred: int
) -> CommandResult:
    turns, events = tally.recorded["turn"], tally.recorded["event"]
    data: dict[str, object] = {
        "task": subject.task,
        "format": transcript.kind,
        "session": transcript.session,
        "lines": transcript.lines,
        "turns": turns,
        "events": events,
        "new": tally.new,
        "masked": tally.masked,
        "lastTurnOpen": not transcript.is_finished,
        "deferredEvents": deferred,
        "unreadable": transcript.unreadable,
    }
    refused = [
        {"what": sent.label, "code": sent.refusal.code, "detail": sent.refusal.detail}
        for sent in tally.refused
        if sent.refusal is not None
    ]
    if refused:
        data |= {"code": refused[0]["code"], "detail": refused[0]["detail"]}
    data["refused"] = refused
    return CommandResult(
        data, _result_renderer(subject, transcript, tally, deferred), is_ok=not tally.refused
    )


def _describe_format(kind: str) -> str:
    return f"{'an' if kind.startswith('o') else 'a'} {kind} session"


def _result_renderer(
    subject: "CaptureTarget", transcript: "Transcript", tally: Tally, deferred: int
) -> Callable[[Screen], None]:
    def show(screen: Screen) -> None:
        turns, events = tally.recorded["turn"], tally.recorded["event"]
        screen.line(
            f"{subject.task}: {turns} turns and {events} events of "
            f"{_describe_format(transcript.kind)}, "
            f"{tally.new} of them new"
        )
        if tally.masked:
            screen.line(f"secrets were masked in {tally.masked} of them")
        if not transcript.is_finished:
            screen.line("the last turn is not finished: it is imported when it is, or with --close")
        if deferred:
            screen.line(f"{deferred} events wait for the first turn, which creates the task")
        if transcript.unreadable:
            shown_lines = ", ".join(map(str, transcript.unreadable[:_MAX_LINES_SHOWN]))
            screen.line(f"lines that are no JSON objects were left out: {shown_lines}")
        if tally.refused:
            screen.line(f"refused: {len(tally.refused)}; the rest is imported")

    return show


# --- growing files ----------------------------------------------------------------------------

_BLOCK_BYTES = 1 << 20

_MAX_DOCUMENT_BYTES = 256 << 20


def read_lines(
    file: BinaryIO, path: Path, wait: Callable[[], bool] | None
) -> Iterator[bytes | None]:
    """Lines of an open file and, with `wait`, those that are appended until it returns False.

    A line counts when it has ended, so that a line being written is not taken for a whole one.
    Without `wait` unterminated text at the end is a line too; with it, None means that all present
    lines were read.
    """
    unfinished = b""
    while True:
        block = file.read(_BLOCK_BYTES)
        if block:
            *lines, unfinished = (unfinished + block).split(b"\n")
            yield from lines
        elif wait is None:
            if unfinished:
                yield unfinished
            return
        elif path.stat().st_size < file.tell():
            raise_usage_error(f"{path} has become shorter while it was read: begin anew")
        else:
            yield None
            if not wait():
                return


def read_document(path: Path) -> bytes:
    """Read a file that is one document over many lines; of a very long one the beginning."""
    with path.open("rb") as file:
        return file.read(_MAX_DOCUMENT_BYTES)


COMMANDS = (CliCommand("trace", trace),)

_PAGE_SIZE = 500


def iterate_turns(store: Store, task: str, attempt: int) -> Iterator[TurnView]:
    """Turns of an attempt, in order."""
    after = -1
    while page := turn_page(store, task, attempt, after, _PAGE_SIZE).turns:
        yield from page
        after = page[-1].turn_index


def iterate_events(store: Store, task: str) -> Iterator[dict[str, Any]]:
    """SAOP events of a task, in order."""
    after = 0
    while page := (reply := trace_page(store, task=task, after=after, limit=_PAGE_SIZE)).events:
        yield from (one.event for one in page)
        after = reply.next


class EarlierImport:
    """Finds what an earlier import of the same session recorded; a `Begin` of a transcript."""

    def __init__(self, store: Store, task: str, *, has_chosen_session: bool) -> None:
        """`has_chosen_session`: the session was named by an option, and that name counts."""
        self._store = store
        self._task = task
        self._has_chosen_session = has_chosen_session
        self.turns: dict[int, TurnView] = {}
        """Turns recorded under other attempts or outside of any: they are not recorded again."""

    def __call__(self, own: str, session: str) -> tuple[str, int]:
        """Session name and first turn: as imported earlier, else behind all recorded turns."""
        found = find_task(self._store, self._task)
        if isinstance(found, Refusal):
            return session, 0
        task, last, first = found.task, -1, None
        for attempt in attempts_with_turns(self._store, task.id):
            for turn in iterate_turns(self._store, task.id, attempt):
                last = turn.turn_index if attempt == task.attempts else last
                if not self._is_same_session(turn, own, session):
                    continue
                first = first or turn
                if attempt != task.attempts:
                    self.turns[turn.turn_index] = turn
        if first is None:
            return session, last + 1
        return first.envelope["metadata"]["session_id"], first.turn_index

    def _is_same_session(self, turn: TurnView, own: str, session: str) -> bool:
        metadata: dict[str, Any] = turn.envelope["metadata"]
        is_named_so = metadata.get("session_id") == session
        captured: Any = metadata.get("captured")
        if self._has_chosen_session or not own or not isinstance(captured, dict):
            return is_named_so
        return captured == {**captured, "session": own}
