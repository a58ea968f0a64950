"""The deliverer: what concerns an agent reaches its mailbox in a dialect that it speaks, once.

One table says which event concerns whom. A request concerns an agent at most once: a letter or a
message that reaches it in its own dialect anyway is not told again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from threading import Lock
from typing import Any, Final, Protocol, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR, HUB_NAME
from dragoman.core.agent import AgentRecord
from dragoman.core.attempt_state import TaskCheckpointed, TaskClaimed, TaskReported
from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import (
    Handoff,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
)
from dragoman.core.ids import bare_name, task_stream
from dragoman.core.intent.state import IntentCompleted, IntentDispatched, IntentUpdated
from dragoman.core.limits import MAX_BODY, MAX_SUBJECT
from dragoman.core.mail import LATE_KIND, Mail, MailPosted, PostMail
from dragoman.core.notice import Notice, read_notice
from dragoman.core.question_state import QuestionAnswered, QuestionAsked
from dragoman.core.task_state import (
    INTENT_ALIAS_KIND,
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    Task,
    TaskCreated,
    TaskHandedOver,
    TaskProgressed,
    TaskTransitioned,
)
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.trace import TurnRecorded
from dragoman.engine.delivered_messages import (
    DELIVERY_PREFIX,
    delivered_kind,
    delivery_id,
    is_foreign_kind,
)
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect, RawMessage
from dragoman.engine.ports import Store
from dragoman.engine.queries.agents import all_agents, find_agent
from dragoman.engine.queries.entries import all_entries, decode_event, find_by_id, version_at
from dragoman.engine.queries.intents import awaited_agent, find_intent, find_intent_of_task
from dragoman.engine.queries.mail import all_mail, find_refusal, last_in_thread
from dragoman.engine.queries.story import task_of_entry
from dragoman.engine.queries.tasks import find_task, find_task_stream
from dragoman.engine.translation import TranslatedMessage, translate_notice
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.services.claims import settle_claim

# --- ports ------------------------------------------------------------------------------------


class Cursor(Protocol):
    """Port: durable storage of a position in the ledger."""

    def load(self) -> bytes:
        """Saved data; empty before the first save."""
        ...

    def save(self, data: bytes) -> None: ...


class _Position(Struct):
    ledger: str = ""
    position: int = 0


WriteFile = Callable[[str, str, bytes], None]
"""Writes a delivered message to the folder of an agent: its name, a file name, the content."""

# --- concerns ---------------------------------------------------------------------------------


class Concern(Struct, frozen=True):
    """Something that an agent is to be told."""

    recipient: str
    notice: Notice
    began_in: str
    """The dialect in which the exchange began; empty: in none."""


class _Spawners:
    """Senders of the requests for a worker, by task. Each letter is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}
        """List of letters -> position up to which it was read, and the senders."""

    def find(self, task: Task) -> Iterator[str]:
        """Those who asked for a worker for a task."""
        for name in (f"thread:{task.mail_name}", f"bead:{task.mail_name}"):
            after, senders = self._known.get(name, (0, ()))
            for letter in all_mail(self._store, name, after):
                after = letter.position
                is_request = letter.mail.kind == "SPAWN_REQUEST"
                if is_request and not find_refusal(self._store, letter):
                    senders = (*senders, letter.mail.sender)
            self._known[name] = after, senders
            yield from senders


class _Told(Struct, frozen=True):
    """An event with everything that its row of the table needs."""

    store: Store
    spawners: _Spawners
    entry: Entry
    line: Line[Any]
    event: Any
    task: Task

    @property
    def speaker(self) -> str:
        """Name of the actor."""
        return self.line.actor.partition(":")[2]

    def to(self, recipient: str, began_in: str, notice: Notice) -> Concern:
        """Tell an agent; the notice gets what every notice has."""
        known = replace(
            notice,
            aof_id=self.task.aof_id,
            sender=self.speaker,
            recipient=recipient,
            at=to_rfc3339(self.line.at),
        )
        return Concern(recipient, known, began_in)

    def to_principals(self, notice: Notice) -> Iterator[Concern]:
        """Tell those for whom the task is worked on."""
        for name, began_in in _principals(self.store, self.task, self.spawners):
            yield self.to(name, began_in, notice)


def _principals(store: Store, task: Task, spawners: _Spawners) -> Iterator[tuple[str, str]]:
    """Those who wait for a task, and the dialect in which each asked for it."""
    if task.delegation is not None:
        yield task.delegation.from_agent, "aof"
    if task.handoff is not None:
        yield task.handoff.owner, "acp"
    intent = find_intent_of_task(store, task)
    if intent is not None:
        yield intent.by, "ccos"
    for name in spawners.find(task):
        yield name, "agentmail"
    (first,) = store.history(task_stream(task.id), 0, 1)
    role, _, name = read_line(first.line).actor.partition(":")
    if role == "agent" and task.assignee not in ("", name):
        yield name, ""


def _parties(store: Store, task: Task, spawners: _Spawners) -> Iterator[str]:
    """Everybody who has a part in a task: those who wait for it, and those who were asked."""
    yield from (name for name, _ in _principals(store, task, spawners))
    if task.delegation is not None:
        yield task.delegation.to_agent
    if task.handoff is not None:
        yield task.handoff.recipient
    intent = find_intent_of_task(store, task)
    if intent is not None:
        yield awaited_agent(store, intent.id)
    yield task.reserved_for


def _of_creation(told: _Told) -> Iterator[Concern]:
    """A task that an agent creates for another one is its offer."""
    event: TaskCreated = told.event
    if event.reserved_for and told.line.actor.startswith("agent:"):
        notice = Notice(kind="offer", title=event.title, text=event.body, priority=event.priority)
        yield told.to(event.reserved_for, "", notice)


def _of_delegation(told: _Told) -> Iterator[Concern]:
    event: DelegationRequested = told.event
    yield told.to(
        event.to_agent,
        "aof",
        Notice(
            kind="offer",
            title=told.task.title,
            text=told.task.body,
            parent=event.parent,
            due_by=to_rfc3339(event.due_by),
            criteria=event.acceptance_criteria,
            outputs=event.expected_outputs,
            refs=event.context_refs,
            constraints=event.constraints,
        ),
    )


def _of_delegation_answer(told: _Told) -> Iterator[Concern]:
    delegation, reason = told.task.delegation, getattr(told.event, "reason", "")
    kind = "accepted" if isinstance(told.event, DelegationAccepted) else "rejected"
    if delegation is not None:
        yield told.to(delegation.from_agent, "aof", Notice(kind=kind, text=reason))


def _of_escalation(told: _Told) -> Iterator[Concern]:
    notice = Notice(kind="escalated", due_by=to_rfc3339(told.event.due_by))
    yield from told.to_principals(notice)


def _of_proposal(told: _Told) -> Iterator[Concern]:
    event: HandoffProposed = told.event
    parts: Any = event.package
    task, work, context = (parts.get(name, {}) for name in ("task", "work_state", "context"))
    yield told.to(
        event.recipient,
        "acp",
        Notice(
            kind="offer",
            title=event.title,
            objective=task.get("objective", ""),
            criteria=tuple(task.get("success_criteria", ())),
            priority=task.get("priority", ""),
            text=context.get("summary", ""),
            next_steps=work.get("next_step", ""),
            due_by=task.get("deadline", ""),
            handoff=event.id,
            package_hash=event.package_hash,
        ),
    )


def _of_handoff_step(told: _Told) -> Iterator[Concern]:
    handoff = find_by_id(told.store, told.entry.stream.partition(":")[2], Handoff)
    event: HandoffTransitioned = told.event
    known: dict[str, Any] = {"text": event.note}
    if isinstance(handoff, Handoff):
        known |= {"handoff": handoff.id, "package_hash": handoff.package_hash}
        if event.to == "activated":
            yield told.to(handoff.sender, "acp", Notice(kind="accepted", **known))
        if event.to == "completed":
            report = told.task.reported
            is_half = report is not None and report.outcome == "partial"
            kind, outcome = ("checkpoint", "partial") if is_half else ("result", "done")
            ended = Notice(kind=kind, outcome=outcome, **known)
            yield told.to(handoff.sender, "acp", ended)


def _of_handoff_rejection(told: _Told) -> Iterator[Concern]:
    handoff = find_by_id(told.store, told.entry.stream.partition(":")[2], Handoff)
    event: HandoffRejected = told.event
    if isinstance(handoff, Handoff):
        is_sender = told.speaker == handoff.sender
        kind = "withdrawn" if is_sender else "rejected"
        notice = Notice(
            kind=kind,
            reason=event.reason,
            text=event.detail,
            recommendation=event.suggested_fix,
            handoff=handoff.id,
            package_hash=handoff.package_hash,
        )
        yield told.to(handoff.recipient if is_sender else handoff.sender, "acp", notice)


def _of_dispatch(told: _Told) -> Iterator[Concern]:
    event: IntentDispatched = told.event
    intent = find_intent(told.store, event.intent)
    if not isinstance(intent, Refusal):
        notice = Notice(
            kind="offer",
            title=told.task.title,
            text=intent.goal,
            params=dict(intent.params),
            constraints=intent.constraints,
            due_by="" if event.deadline is None else to_rfc3339(event.deadline),
            request=event.request_id,
        )
        yield told.to(event.agent, "ccos", notice)


def _of_intent_update(told: _Told) -> Iterator[Concern]:
    event: IntentUpdated = told.event
    notice = Notice(kind="progress", percent=event.progress, text=event.message)
    yield from told.to_principals(replace(notice, request=event.request_id))


def _of_intent_result(told: _Told) -> Iterator[Concern]:
    event: IntentCompleted = told.event
    known: dict[str, Any] = {"request": event.request_id}
    if event.synthetic == "blocked":
        return  # the move says what is asked
    if event.success:
        is_text = isinstance(event.output, str)
        said = {"text" if is_text else "output": event.output}
        yield from told.to_principals(Notice(kind="result", outcome="done", **said, **known))
    else:
        yield from told.to_principals(Notice(kind="failed", text=event.error, **known))


def _of_claim(told: _Told) -> Iterator[Concern]:
    notice = Notice(kind="accepted", title=told.task.title, session=told.event.session)
    yield from told.to_principals(notice)


def _of_progress(told: _Told) -> Iterator[Concern]:
    event: TaskProgressed = told.event
    notice = Notice(
        kind="progress", text=event.progress, notes=event.notes, blockers=event.blockers
    )
    yield from told.to_principals(notice)


def _of_turn(told: _Told) -> Iterator[Concern]:
    content: Any = told.event.envelope.get("content", {})
    yield from told.to_principals(Notice(kind="progress", text=content.get("thought", "")))


def _of_question(told: _Told) -> Iterator[Concern]:
    event: QuestionAsked = told.event
    notice = Notice(kind="help_asked", question=event.text, question_id=event.id)
    yield from told.to_principals(notice)


def _of_answer(told: _Told) -> Iterator[Concern]:
    known = (*told.task.answers, *told.task.questions)
    asked = next((one.asked_by for one in known if one.id == told.event.id), "")
    if asked:
        notice = Notice(kind="help_answered", text=told.event.text, question_id=told.event.id)
        yield told.to(asked, "", notice)


def _of_report(told: _Told) -> Iterator[Concern]:
    event: TaskReported = told.event
    kinds: Mapping[str, Any] = {"blocked": "failed", "failed": "failed", "partial": "checkpoint"}
    kind = kinds.get(event.outcome, "result")
    details: Any = event.details
    notice = Notice(
        kind=kind,
        outcome="" if kind == "failed" else event.outcome,
        text=event.notes,
        output=details.get("output"),
        blockers=event.blockers,
        question_id=_id_of_obstacle(told.task),
        files=tuple(map(str, details.get("deliverables", ()) or ())),
        attempts=event.attempt if kind == "failed" else None,
    )
    yield from told.to_principals(notice)


def _of_checkpoint(told: _Told) -> Iterator[Concern]:
    event: TaskCheckpointed = told.event
    notice = Notice(
        kind="checkpoint",
        reason=event.reason,
        commit=event.commit,
        text=event.description,
        next_steps=event.next_steps,
    )
    yield from told.to_principals(notice)


def _of_move(told: _Told) -> Iterator[Concern]:
    event: TaskTransitioned = told.event
    kinds: Mapping[str, Any] = {
        "review": "result",
        "done": "result",
        "blocked": "failed" if event.by_report else "help_asked",
        "deadletter": "failed",
        "cancelled": "withdrawn",
    }
    if event.from_ == "review" and event.to == "ready" and told.task.assignee:
        again = Notice(kind="offer", title=told.task.title, text=event.other_text or event.reason)
        yield told.to(told.task.assignee, "", again)
    kind = kinds.get(event.to)
    if kind is not None:
        text = event.other_text or event.reason
        question = told.task.obstacle or text if kind == "help_asked" else ""
        said = "" if question else text
        notice = Notice(kind=kind, text=said, question=question, status=event.to)
        notice = replace(notice, question_id=_id_of_obstacle(told.task))
        yield from told.to_principals(notice)
        if kind == "withdrawn" and told.task.assignee:
            yield told.to(told.task.assignee, "", notice)


def _id_of_obstacle(task: Task) -> str:
    """Id of the question for whose answer a blocked task waits; empty: there is none."""
    is_asked = (one.id for one in task.questions if one.text == task.obstacle)
    return next(is_asked, "") if task.status == "blocked" else ""


CONCERNS: Final[Mapping[type[Event], Callable[[_Told], Iterator[Concern]]]] = {
    TaskCreated: _of_creation,
    DelegationRequested: _of_delegation,
    DelegationAccepted: _of_delegation_answer,
    DelegationRejected: _of_delegation_answer,
    DelegationEscalated: _of_escalation,
    HandoffProposed: _of_proposal,
    HandoffRejected: _of_handoff_rejection,
    HandoffTransitioned: _of_handoff_step,
    IntentDispatched: _of_dispatch,
    IntentUpdated: _of_intent_update,
    IntentCompleted: _of_intent_result,
    TaskClaimed: _of_claim,
    TaskProgressed: _of_progress,
    TurnRecorded: _of_turn,
    QuestionAsked: _of_question,
    QuestionAnswered: _of_answer,
    TaskReported: _of_report,
    TaskCheckpointed: _of_checkpoint,
    TaskTransitioned: _of_move,
}
"""Event -> who is told what about it. Letters concern their recipients."""


# --- service ----------------------------------------------------------------------------------

_MAX_REQUEST = 256
"""Entries of one request that are looked at."""


class Deliverer:
    """Follows the ledger, and delivers to each agent that is registered with what it speaks."""

    name = "deliverer"

    def __init__(
        self, hub: Hub, dialects: Sequence[Dialect], cursor: Cursor, write_file: WriteFile
    ) -> None:
        self._hub = hub
        self._store = hub.store
        self._dialects = {dialect.name: dialect for dialect in dialects}
        self._cursor = cursor
        self._spawners = _Spawners(hub.store)
        self._write_file = write_file
        self._is_running = Lock()

    def run_once(self, now: int) -> int:
        """Deliver what the ledger tells since the last run; the number of messages."""
        del now
        with self._is_running:
            return self._catch_up()

    def messages_about(self, task: Task, agent: str) -> tuple[Any, ...]:
        """The last messages about a task that were delivered to an agent, oldest first.

        What is new is delivered before, unless much of the ledger is to be read for that.
        """
        record = find_agent(self._store, agent)
        if record is None or not record.speaks:
            return ()
        if self._store.head() - self._load() <= _MAX_WAITED_FOR:
            self.run_once(0)
        found: dict[int, Mail] = {}
        aliases = map(bare_name, task.aliases)
        for name in dict.fromkeys((task.id, task.aof_id, task.mail_name, *aliases)):
            page = last_in_thread(
                self._store, name, _MAX_SHOWN, matches=lambda mail: _is_delivered(mail, agent)
            )
            found |= {letter.position: letter.mail for letter in page.letters}
        shown, bytes_left = list[Any](), _MAX_SHOWN_BYTES
        for _, mail in sorted(found.items(), reverse=True)[:_MAX_SHOWN]:
            bytes_left -= len(mail.body.encode())
            if bytes_left < 0:
                break
            shown.append(self._read_delivered(mail))
        return tuple(reversed(shown))

    def _read_delivered(self, mail: Mail) -> Any:
        """The message that a letter of this service holds: see `_post`."""
        try:
            content: Any = msgspec.json.decode(mail.body)
        except msgspec.DecodeError:
            return {"subject": mail.subject, "body_md": mail.body}
        if mail.kind.partition(".")[0] in self._dialects:
            return content
        return {"type": mail.kind, "task_id": mail.bead, "to": mail.to, "payload": content}

    def _catch_up(self) -> int:
        after, head = self._load(), self._store.head()
        if head <= after:
            return 0
        speakers = {
            name: record for name, record in all_agents(self._store).items() if record.speaks
        }
        delivered = 0
        if speakers:
            for request in _requests(self._store, after, head):
                delivered += self._deliver_request(request, speakers)
        self._cursor.save(msgspec.json.encode(_Position(self._store.ledger_id(), head)))
        return delivered

    def _load(self) -> int:
        """The position up to which everything is delivered; from the start for another ledger."""
        data = self._cursor.load()
        try:
            known = msgspec.json.decode(data, type=_Position) if data else _Position()
        except msgspec.MsgspecError:
            known = _Position()
        is_ours = known.ledger == self._store.ledger_id() and known.position <= self._store.head()
        return known.position if is_ours else 0

    def _deliver_request(
        self, request: Sequence[Entry], speakers: Mapping[str, AgentRecord]
    ) -> int:
        """Tell each agent once about a request."""
        told, delivered = set[str](), 0
        letters = self._letters_of(request)
        in_order = sorted(request, key=_generality)
        concerns = chain.from_iterable(self._concerns(entry, request) for entry in in_order)
        for concern in sorted(concerns, key=_is_plain):
            record = speakers.get(concern.recipient)
            if record is None or concern.recipient in told:
                continue
            if concern.recipient == concern.notice.sender:
                continue
            told.add(concern.recipient)
            at = read_line(request[0].line).at
            if at >= record.registered_at:
                delivered += self._deliver(concern, record, request[0], letters)
        return delivered

    def _letters_of(self, request: Sequence[Entry]) -> set[tuple[str, str]]:
        """Recipients of the letters of a request, each with the dialect of the letter."""
        posted = (decode_event(entry) for entry in request if entry.event == _POSTED)
        return {
            (name, self._read_letter(event)[0])
            for event in posted
            if isinstance(event, MailPosted)
            for name in (*event.to, *event.cc, *event.auto_copied)
        }

    def _concerns(self, entry: Entry, request: Sequence[Entry]) -> Iterator[Concern]:
        """Concerns of an entry, by the state of its task at the end of its request."""
        event = decode_event(entry)
        line = read_line(entry.line)
        if isinstance(event, MailPosted):
            yield from self._letter_concerns(entry, line, event, request)
        find_concerns = CONCERNS.get(type(event))
        task = None if find_concerns is None else _task_of(self._store, entry, request[-1].position)
        if find_concerns is not None and task is not None:
            yield from find_concerns(_Told(self._store, self._spawners, entry, line, event, task))

    def _letter_concerns(
        self, entry: Entry, line: Line[Any], event: MailPosted, request: Sequence[Entry]
    ) -> Iterator[Concern]:
        """Concerns of a letter's recipients; what this service has posted concerns nobody, and of
        what the hub posts by itself only what it escalates."""
        is_hubs_own = line.actor.partition(":")[2] == HUB_NAME
        is_escalation = is_hubs_own and event.kind in _ESCALATING_KINDS
        if event.id.startswith(DELIVERY_PREFIX) or (is_hubs_own and not is_escalation):
            return
        task = _task_of(self._store, entry, request[-1].position)
        began_in, notice = self._read_letter(event)
        if is_escalation:
            text = notice.text or f"the work does not go on: {notice.question}"
            notice = replace(notice, kind="escalated", text=text, question="")
        asked = () if task is None else (*task.questions, *task.answers)
        known = replace(
            notice,
            question_id=next((one.id for one in asked if one.mail == event.id), ""),
            aof_id=task.aof_id if task else "",
            task="",
            sender=event.sender,
            at=to_rfc3339(line.at),
            thread="",
        )
        if event.sender != HUB_NAME:
            known = self._settle(known, task, request)
        for name in dict.fromkeys((*event.to, *event.cc, *event.auto_copied)):
            yield Concern(name, replace(known, recipient=name), began_in)

    def _settle(self, notice: Notice, task: Task | None, request: Sequence[Entry]) -> Notice:
        """The notice of a letter, as a fact only if it may be one."""
        parties = () if task is None else _parties(self._store, task, self._spawners)
        own = "" if task is None else task_stream(task.id)
        is_applied = any(one.stream == own and one.event in _FACTS for one in request)
        events = map(decode_event, request)
        return settle_claim(notice, task, events, parties, is_applied=is_applied)

    def _read_letter(self, event: MailPosted) -> tuple[str, Notice]:
        """The dialect of a letter that an agent has sent, and what it says."""
        row = {"subject": event.subject, "body_md": event.body}
        try:
            payload: Any = msgspec.json.decode(event.body)
        except msgspec.DecodeError:
            payload = None
        half_done = _half_done(payload) if event.kind == "handoff.complete" else None
        if half_done is not None:
            return "acp", half_done
        message = {"type": event.kind, "to": list(event.to), "payload": payload}
        forms = (("acp", message), ("agentmail", row))
        for name, value in forms[: 1 if is_foreign_kind(event.kind) else 2]:
            dialect = self._dialects.get(name)
            parsed = None if dialect is None else dialect.parse(RawMessage(value))
            if dialect is not None and parsed is not None and parsed.fault is None:
                notice = dialect.to_notice(parsed.message)
                if notice is not None:
                    return name, notice
        return "", Notice(kind="message", title=event.subject, text=event.body)

    def _deliver(
        self,
        concern: Concern,
        record: AgentRecord,
        first: Entry,
        letters: set[tuple[str, str]],
    ) -> int:
        """Deliver in the dialect in which the exchange began, if the agent speaks it, else in the
        first that it names; the number of messages."""
        known = self._dialects.values()
        spoken = [one.name for entry in record.speaks for one in known if one.is_spoken_as(entry)]
        if not spoken:
            return 0
        name = concern.began_in if concern.began_in in spoken else spoken[0]
        if (concern.recipient, name) in letters:
            return 0  # it has a letter of the request itself
        notice = self._name_task(concern.notice, name)
        if name == "acp" and notice.kind == "offer":
            # A message, not the action of an initiator.
            notice = replace(notice, criteria=(), details={"criteria": list(notice.criteria)})
        if name == "ccos" and notice.kind == "failed" and notice.blockers:
            # A failed TaskResult asks nothing.
            asked = "; ".join(notice.blockers)
            notice = replace(notice, kind="help_asked", question=asked, blockers=())
        if name == "agentmail":
            # The letter is the hub's; its notes name the author.
            notice = replace(notice, details={**notice.details, "from": notice.sender})
        made = translate_notice(notice, "", self._dialects[name])
        if isinstance(made, Refusal) or len(msgspec.json.encode(made.message)) > MAX_BODY:
            return 0
        self._post(made, concern.recipient, notice, first)
        return 1

    def _name_task(self, notice: Notice, dialect: str) -> Notice:
        """The notice under the name that its task has in that dialect."""
        found = find_task(self._store, notice.aof_id) if notice.aof_id else None
        if found is None or isinstance(found, Refusal):
            return notice
        task = found.task
        names = {"agentmail": task.mail_name, "aof": task.aof_id}
        intent = next((a for a in task.aliases if a.startswith(f"{INTENT_ALIAS_KIND}:")), task.id)
        names["ccos"] = bare_name(intent)
        return replace(
            notice, task=names.get(dialect, task.id), aof_id="" if dialect != "aof" else task.aof_id
        )

    def _post(self, made: TranslatedMessage, recipient: str, notice: Notice, first: Entry) -> None:
        digest = sha256(f"{read_line(first.line).cause}\n{recipient}".encode()).hexdigest()
        message, data = made.message, msgspec.json.encode(made.message)
        parsed = self._dialects[made.to].parse(RawMessage(data))
        kind = parsed.kind if parsed is not None else ""
        if made.to == "agentmail":
            subject, body = message["subject"], message["body_md"]
        elif made.to == "acp":
            kind, payload = message["type"], {**message["payload"], "sender": notice.sender}
            body = msgspec.json.encode(payload).decode()
            subject = f"{kind}: {notice.task}"
        else:
            kind, subject = delivered_kind(made.to, kind), f"{made.kind}: {notice.task}"
            body = data.decode()
        self._hub.submit(
            HUB_ACTOR,
            PostMail(
                to=(recipient,),
                subject=subject[:MAX_SUBJECT],
                body=body,
                kind=kind,
                id=delivery_id(digest[:32], notice.question_id),
                bead=notice.task,
            ),
        )
        self._write_file(recipient, f"{first.position:012}-{digest[:8]}.json", data + b"\n")


def _half_done(payload: Any) -> Notice | None:
    """The notice of a letter about half done work: the hub says more in it than a message may."""
    said = cast(dict[str, Any], payload if isinstance(payload, dict) else {})
    own = {"text": said.get("note"), "outcome": said.get("outcome", "")}
    return read_notice("checkpoint", own) if any(own.values()) else None


_MAX_WAITED_FOR: Final = 2_000
"""Entries that an agent's start waits for; more of them, as after an import, are left to the
service."""

_MAX_SHOWN: Final = 10
_MAX_SHOWN_BYTES: Final = 32 << 10
"""Limits of the messages that a started agent is shown; the read operations have all of them."""


def _is_delivered(mail: Mail, agent: str) -> bool:
    is_ours = mail.sender == HUB_NAME and mail.id.startswith(DELIVERY_PREFIX)
    return is_ours and agent in mail.to


_POSTED: Final = EVENT_NAMES[MailPosted]


_ESCALATING_KINDS: Final = frozenset(("status.blocked", LATE_KIND))
"""Kinds of letters by which the hub tells coordinators that something does not go on."""

_GENERAL: Final = (EVENT_NAMES[TaskTransitioned], EVENT_NAMES[TaskClaimed])


_FACTS: Final = frozenset(EVENT_NAMES[event] for event in (*CONCERNS, TaskHandedOver))
"""Events by which the task of a letter has changed as the letter says."""


def _is_plain(concern: Concern) -> bool:
    """True for words without a meaning for the task: whatever else is told goes before them."""
    return concern.notice.kind == "message"


def _generality(entry: Entry) -> int:
    """Rank of an entry: other events say better what moved, and moves why the hub writes to it."""
    is_hubs_letter = entry.event == _POSTED and read_line(entry.line).actor == HUB_ACTOR.label
    return 2 if is_hubs_letter else int(entry.event in _GENERAL)


def _requests(store: Store, after: int, until: int) -> Iterator[list[Entry]]:
    """The entries after a position, by request."""
    request, cause = list[Entry](), ""
    for entry in all_entries(store, after, until=until):
        line = read_line(entry.line)
        if line.cause != cause and request:
            yield request
            request = []
        cause = line.cause
        if len(request) < _MAX_REQUEST:
            request.append(entry)
    if request:
        yield request


def _task_of(store: Store, entry: Entry, until: int) -> Task | None:
    """The task that an event is about, as it was when the ledger had reached this position."""
    kind, _, name = entry.stream.partition(":")
    if kind in ("task", "turns"):
        about = name
    elif kind == "intent":
        about = f"{INTENT_ALIAS_KIND}:{name}"
    else:
        about = task_of_entry(store, entry)
    stream = find_task_stream(store, about) if about else ""
    if isinstance(stream, Refusal) or not stream:
        return None
    found = find_task(store, bare_name(stream), version_at(store, stream, until))
    return None if isinstance(found, Refusal) else found.task
