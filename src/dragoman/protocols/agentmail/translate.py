"""Translate a letter to commands: its recipients, the letter it answers, its effect on the task.

A letter is always posted. The commands that its type asks for are an effect that may be refused
without the letter (S-MAIL-9).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReportOutcome
from dragoman.core.authority import dispatch_objection
from dragoman.core.base import Command, Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import bare_name, check_id, is_task_name, mail_stream
from dragoman.core.limits import MAX_REASON, MAX_RECIPIENTS, WAIT_RANGE_MS, check_duration
from dragoman.core.mail import AnswerMail, Mail, PostMail
from dragoman.core.question_state import AskQuestion
from dragoman.core.task_state import BEAD_KIND, AdoptTask, MoveTask, UpdateTask
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.help_case import help_commands
from dragoman.engine.operation import Fault, fault_from_refusal
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.agents import acts_as_agent, find_agent, names_in_role
from dragoman.engine.queries.entries import END_OF_LIST, stream_state
from dragoman.engine.queries.mail import (
    MailFilter,
    all_mail,
    find_letter,
    mail_page,
    task_name_in_mail,
)
from dragoman.engine.queries.tasks import find_task_stream
from dragoman.engine.queries.visibility import find_reader, visible_to
from dragoman.engine.request import Commands
from dragoman.protocols.agentmail.notice import to_notice
from dragoman.protocols.agentmail.parse import Parser, is_reply, parse_subject
from dragoman.protocols.agentmail.settings import Choices
from dragoman.protocols.agentmail.wire import (
    ACK_REQUIRED,
    ANSWER_ROLES,
    ANSWERS,
    MESSAGE_TYPES,
    Message,
    MessageType,
    OutgoingLetter,
    SendMail,
)

# --- recipients and replies -------------------------------------------------------------------

ROLE_GROUPS: Final[Mapping[str, Role]] = {
    "@agents": "agent",
    "@orchestrators": "orchestrator",
    "@coordinators": "coordinator",
    "@humans": "human",
}
"""Address -> role whose registered agents receive the letter."""


class _Posting(Struct, frozen=True):
    """A letter about to be posted."""

    command: PostMail
    message: Message
    replied_to: Sequence[Mail]
    """The letter it replies to, or the letters it answers without naming them."""
    is_echo: bool
    """The type only repeats that of the letter it replies to, so it is a plain letter."""
    is_repeat: bool
    """The sender has sent it before, under its own id."""


def resolve_bead(letter: OutgoingLetter, store: Store) -> Message:
    """Return the message with the bead under the task's name in this hub.

    A plain word before a colon is a bead if a task has that name.
    """
    row, message = letter.row, letter.message
    if not message.bead_id and ":" in row.subject:
        parser = Parser(
            is_known=lambda name: not isinstance(find_task_stream(store, name), Refusal)
        )
        message = parser.parse({"subject": row.subject, "body_md": row.body_md})
    name = task_name_in_mail(message.bead_id, store)
    if name == message.bead_id:
        return message
    return replace(message, parsed=replace(message.parsed, bead_id=name))


def needs_lookup(letter: OutgoingLetter) -> bool:
    """Tell whether the store must be read; not for a plain letter to plain names."""
    row, message = letter.row, letter.message
    is_plain = message.type is MessageType.UNKNOWN and ":" not in row.subject
    has_references = row.id is not None or bool(row.reply_to or row.thread_id or message.bead_id)
    return (
        has_references
        or not is_plain
        or any("@" in name for name in (*split_addresses(row.to), *split_addresses(row.cc)))
    )


def post_commands(
    letter: OutgoingLetter, actor: Actor, store: Store, choices: Choices
) -> Commands | Fault:
    """Build the command that posts the letter."""
    posting = _prepare_posting(letter, actor, store, choices)
    return posting if isinstance(posting, Fault) else (posting.command,)


def _prepare_posting(
    letter: OutgoingLetter, actor: Actor, store: Store, choices: Choices
) -> _Posting | Fault:
    message = resolve_bead(letter, store)
    row = replace(letter.row, thread_id=task_name_in_mail(letter.row.thread_id, store))
    to = _resolve_addresses(row.to, "to", store, choices)
    if isinstance(to, Fault):
        return to
    cc = _resolve_addresses(row.cc, "cc", store, choices)
    if isinstance(cc, Fault):
        return cc
    within = choices.ack_within_ms if row.ack_within_ms is None else row.ack_within_ms
    refusal = check_duration("the time to answer", within, *WAIT_RANGE_MS)
    if refusal is not None:
        return fault_from_refusal(refusal, "ack_within_ms")
    is_shown = visible_to(find_reader(actor, choices.teamspaces), store)
    replied_to = _find_replied_to(row, message, actor, to, store, is_shown)
    if isinstance(replied_to, Fault):
        return replied_to
    to = to or _default_recipients(message.type, replied_to, actor, store, choices)
    bead = message.bead_id if is_task_name(message.bead_id) else _answered_bead(message, replied_to)
    thread = row.thread_id or (replied_to[-1].thread if replied_to else "") or bare_name(bead)
    # Looked up last: a reader who sees the question answered must also see the answering letter.
    earlier = _find_earlier(row, actor, store)
    if earlier is not None:
        to = earlier.to if _has_group_or_default(row.to) else to
        cc = earlier.cc if _has_group_or_default(row.cc) else cc
        is_same_thread = row.thread_id in ("", task_name_in_mail(earlier.thread, store))
        thread = earlier.thread if is_same_thread else row.thread_id
        bead = bead if message.bead_id else earlier.bead
    if not to and message.type not in ANSWERS:
        return Fault("invalid_field", "it is addressed to nobody: name a recipient", "to")
    is_echo = is_reply(row.subject) and (
        message.type == _repeatable_type(replied_to, thread, store)
        or (earlier is not None and earlier.kind == MessageType.UNKNOWN)
    )
    applies = not is_echo and _applies(message.type, to, actor, store, choices)
    wants_answer = applies and message.type in ANSWERS.values()
    acked_by_default = applies and ACK_REQUIRED[message.type]
    wants_ack = acked_by_default if row.ack_required is None else row.ack_required
    command = PostMail(
        to=to,
        subject=row.subject,
        body=row.body_md,
        kind=_delivered_kind(message.type, earlier, is_echo=is_echo),
        id="" if row.id is None else str(row.id),
        thread=thread,
        cc=cc,
        auto_copied=() if is_echo else _cc_recipients(message.type, to, store, choices),
        bead=bead,
        reply_to=replied_to[0].id if row.reply_to else "",
        importance=row.importance,
        ack_wanted=wants_ack,
        answer_wanted=wants_answer,
        due_in_ms=within if wants_ack or wants_answer else 0,
        attachments=row.attachments,
        sent_at=_parse_sent_at(row.timestamp),
        served=(choices.spawner,) if message.type is MessageType.SPAWN_REQUEST else (),
    )
    return _Posting(command, message, replied_to, is_echo, is_repeat=earlier is not None)


def _answered_bead(message: Message, replied_to: Sequence[Mail]) -> str:
    """Bead of an answer that names none: the one of what it answers, if that is unambiguous."""
    beads = {mail.bead for mail in replied_to if message.type in ANSWERS}
    return beads.pop() if len(beads) == 1 else ""


def _delivered_kind(type: MessageType, earlier: Mail | None, *, is_echo: bool) -> str:
    """Kind as which it is delivered; a letter that was sent before keeps its kind."""
    if earlier is not None:
        return earlier.kind
    return MessageType.UNKNOWN if is_echo else type


def _applies(
    type: MessageType, to: tuple[str, ...], actor: Actor, store: Store, choices: Choices
) -> bool:
    """Tell whether the recipient owes what the type asks for.

    A request for a worker by a caller who may not request one obliges nobody but the hub, which
    refuses.
    """
    if type is not MessageType.SPAWN_REQUEST or not dispatch_objection(actor.label):
        return True
    return choices.spawner in to and find_agent(store, choices.spawner) is None


def _find_earlier(row: SendMail, actor: Actor, store: Store) -> Mail | None:
    """Find the letter that this sender has already sent under this id."""
    if row.id is None or check_id(str(row.id), "letter id"):
        return None
    found = store.stream(mail_stream(str(row.id)))
    state = None if found is None else stream_state(store, found)
    return state if isinstance(state, Mail) and state.sender == actor.name else None


def _has_group_or_default(addresses: tuple[str, ...] | str) -> bool:
    """Tell whether recipients may change from day to day: none are named, or a group is."""
    names = split_addresses(addresses)
    return not names or any(name.startswith("@") for name in names)


def split_addresses(addresses: tuple[str, ...] | str) -> tuple[str, ...]:
    """Split a list, or a text with commas, into names."""
    if isinstance(addresses, str):
        return tuple(name for name in map(str.strip, addresses.split(",")) if name)
    return addresses


def _parse_sent_at(text: str) -> int | None:
    """Parse the sender's timestamp; an unreadable one does not stop the letter."""
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None


def _resolve_addresses(
    addresses: tuple[str, ...] | str, field: str, store: Store, choices: Choices
) -> tuple[str, ...] | Fault:
    """Resolve addresses to recipients, each once."""
    recipients: list[str] = []
    for name in split_addresses(addresses):
        if not name.startswith("@"):
            recipients.append(name)
        elif name in ROLE_GROUPS:
            recipients += names_in_role(store, ROLE_GROUPS[name])
        elif name[1:] in choices.groups:
            recipients += choices.groups[name[1:]]
        else:
            known = ", ".join((*ROLE_GROUPS, *(f"@{group}" for group in choices.groups)))
            return Fault(
                "invalid_field", f"there is no group {name[:40]!a}; there are {known}", field
            )
    if split_addresses(addresses) and not recipients:
        return Fault(
            "invalid_field", f"nobody is in {', '.join(split_addresses(addresses))[:80]!a}", field
        )
    return tuple(dict.fromkeys(recipients))


def _default_recipients(
    type: MessageType, replied_to: Sequence[Mail], actor: Actor, store: Store, choices: Choices
) -> tuple[str, ...]:
    """Default recipients for this type; empty if there are none."""
    if replied_to:
        # A sender who continues its own letter writes to that letter's recipients.
        recipients = (
            mail.to if mail.sender == actor.name else (mail.sender,) for mail in replied_to
        )
        return tuple(dict.fromkeys(chain.from_iterable(recipients)))
    if type is MessageType.UNKNOWN or type in ANSWERS:
        return ()
    if type is MessageType.SPAWN_REQUEST:
        return (choices.spawner,)
    orchestrators = names_in_role(store, "orchestrator")
    if type is not MessageType.HELP_REQUEST:
        return orchestrators or ("orchestrator",)
    if actor.name != choices.helper:
        return (choices.helper,)
    # An agent never answers itself, so the helper's own requests go to the orchestrators.
    return tuple(name for name in orchestrators if name != actor.name) or ("orchestrator",)


def _cc_recipients(
    type: MessageType, to: tuple[str, ...], store: Store, choices: Choices
) -> tuple[str, ...]:
    """Recipients that the hub adds: helper and orchestrators get every request for help, and people
    where there is neither.

    A request for a worker that goes to no registered agent is answered by the spawner.
    """
    if type is MessageType.SPAWN_REQUEST:
        has_known_recipient = any(find_agent(store, name) is not None for name in to)
        return () if has_known_recipient else (choices.spawner,)
    if type is not MessageType.HELP_REQUEST:
        return ()
    orchestrators = names_in_role(store, "orchestrator")
    is_helped = bool(orchestrators) or acts_as_agent(store, choices.helper)
    # Where nobody else would see it, people do.
    people = () if is_helped else names_in_role(store, "human")
    return (choices.helper, *orchestrators, *people)[:MAX_RECIPIENTS]


def _find_replied_to(
    row: SendMail,
    message: Message,
    actor: Actor,
    to: tuple[str, ...],
    store: Store,
    is_shown: MailFilter,
) -> Sequence[Mail] | Fault:
    """Find the letter that this one replies to, or those that it answers without naming them.

    The latter are all that wait for such an answer in its thread or about its bead, or, if it names
    neither, in the sender's own box from one of its recipients.
    """
    if row.reply_to:
        found = find_letter(store, row.reply_to, is_shown)
        if isinstance(found, Refusal):
            return fault_from_refusal(found, "reply_to")
        return (found,)
    if message.type not in ANSWERS:
        return ()
    is_named = bool(row.thread_id or message.bead_id)
    lists = _question_lists(row, message) if is_named else (f"asked:{actor.name}",)
    found = (
        tuple(
            letter.mail
            for letter in all_mail(store, name)
            if _is_answer_to(message, actor, letter.mail) and (is_named or letter.mail.sender in to)
        )
        for name in lists
    )
    return next(filter(None, found), ())


def _question_lists(row: SendMail, message: Message) -> Iterator[str]:
    """Yield the lists of open questions in the answer's thread, then about its bead."""
    thread, bead = row.thread_id or bare_name(message.bead_id), message.bead_id
    if not check_id(thread, "thread"):
        yield f"open:{thread}"
    if not row.thread_id and is_task_name(bead):
        yield f"about:{bead}"


def _repeatable_type(replied_to: Sequence[Mail], thread: str, store: Store) -> str:
    """Type that a reply may repeat: of the letter it names, or of its thread's last letter.

    Letters that the hub wrote in between are skipped.
    """
    if replied_to or check_id(thread, "thread"):
        return _stated_type(replied_to[-1]) if replied_to else ""
    newest_first = ListQuery(f"thread:{thread}", before=END_OF_LIST, limit=1)
    page = mail_page(store, newest_first, lambda mail: _stated_type(mail) in MESSAGE_TYPES)
    return _stated_type(page.letters[0].mail) if page.letters else ""


def _stated_type(mail: Mail) -> str:
    """Type of a letter; for a plain one, the type that its subject repeats."""
    is_plain = mail.kind == MessageType.UNKNOWN
    return parse_subject(mail.subject).type if is_plain else mail.kind


def _is_answer_to(message: Message, actor: Actor, mail: Mail) -> bool:
    """Tell whether a message answers this letter; nobody answers itself."""
    return (
        mail.kind == ANSWERS.get(message.type)
        and mail.awaits_answer
        and mail.sender != actor.name
        and (not message.bead_id or mail.bead in ("", message.bead_id))
    )


# --- commands of each message type ------------------------------------------------------------

ORIGIN: Final = "agentmail"

_CUT: Final = "… (the letter has the rest)"

_CLAIMS_NOTHING: Final = frozenset({MessageType.BEAD_ACCEPTED, MessageType.SPAWN_REQUEST})
"""Types by whose adoption a task is not claimed: the first has a command for that, the second is
for another agent."""

CommandBuilder = Callable[[Message, Actor, Choices], Iterator[Command]]


def _task_name(message: Message, choices: Choices) -> str:
    """Name by which the task is looked up; adoption has just given it this one."""
    return f"{BEAD_KIND}:{message.bead_id}" if choices.adopt else message.bead_id


def _adopt_commands(message: Message, actor: Actor, choices: Choices) -> Commands:
    """Adopt the task, new here or not; a letter of an agent about its work claims it too."""
    if not choices.adopt:
        return ()
    is_work = actor.role == "agent" and message.type not in _CLAIMS_NOTHING
    return (
        AdoptTask(
            BEAD_KIND,
            message.bead_id,
            title=message.parsed.title,
            origin=ORIGIN,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            claim_for=actor.name if is_work else "",
            ttl_ms=choices.ttl_ms,
        ),
    )


def _claim_commands(message: Message, actor: Actor, choices: Choices) -> Iterator[Command]:
    yield ClaimTask(
        _task_name(message, choices), actor.name, ttl_ms=choices.ttl_ms, renew_if_held=True
    )


def _progress_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    fields = message.parsed
    usage = "" if fields.context_usage is None else f"context {fields.context_usage}%"
    files = f"files: {', '.join(fields.files_touched)}" if fields.files_touched else ""
    yield UpdateTask(
        _task_name(message, choices),
        progress=": ".join(filter(None, (fields.step, fields.status))) or message.subject,
        notes="; ".join(filter(None, (usage, files))),
    )


def _help_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    fields = message.parsed
    kind = f"{fields.issue_type}: " if fields.issue_type else ""
    question = fields.question or fields.problem or message.subject
    yield AskQuestion(
        _task_name(message, choices),
        _shorten(f"{kind}{question}"),
        by_letter=True,
        mail="" if message.id is None else str(message.id),
    )


def _shorten(text: str) -> str:
    """Cut what is too long for a question or an answer of a task; the letter has all of it."""
    if len(text) <= MAX_REASON:
        return text
    return text[: MAX_REASON - len(_CUT)] + _CUT


def _completion_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    fields = message.parsed
    checks = (fields.tests_pass, fields.lint_pass, fields.build_pass)
    yield ReportOutcome(
        _task_name(message, choices),
        "needs_review" if False in checks else "done",
        notes=fields.summary,
        details=_non_empty(
            commit=fields.commit_sha,
            files=fields.files,
            tests_pass=fields.tests_pass,
            lint_pass=fields.lint_pass,
            build_pass=fields.build_pass,
        ),
        apply=True,
        backoff=choices.backoff,
    )


def _failure_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    fields = message.parsed
    if fields.failure_type == "CONTEXT_HIGH":
        yield CheckpointTask(
            _task_name(message, choices),
            fields.failure_type,
            fields.partial_commit_sha,
            fields.reason,
            fields.recommendation,
            backoff=choices.backoff,
        )
        return
    is_hopeless = fields.failure_type == "SPEC_IMPOSSIBLE"
    reason = fields.reason or fields.failure_type or "no reason given"
    yield ReportOutcome(
        _task_name(message, choices),
        "blocked" if is_hopeless else "failed",
        notes=fields.recommendation,
        blockers=(reason,),
        details=_non_empty(
            failure_type=fields.failure_type,
            commit=fields.partial_commit_sha,
            files=fields.files,
            internal_attempts=fields.internal_attempts,
        ),
        apply=True,
        backoff=choices.backoff,
    )


def _checkpoint_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    fields = message.parsed
    yield CheckpointTask(
        _task_name(message, choices),
        fields.checkpoint_reason or "MANUAL",
        fields.partial_commit_sha,
        fields.progress,
        fields.next_steps,
        backoff=choices.backoff,
    )


def _spawn_commands(message: Message, _: Actor, choices: Choices) -> Iterator[Command]:
    """Make the task ready for a spawner, with or without its checkpoint."""
    fields, task = message.parsed, _task_name(message, choices)
    # First, because a task that somebody works on must be refused before anything changes.
    yield MoveTask(task, "ready", "worker requested", unless_in_progress=True)
    if fields.resume and fields.partial_commit_sha:
        yield CheckpointTask(task, "RESUME", fields.partial_commit_sha)
    elif fields.resume is False:
        yield CheckpointTask(task, "RESTART", replaces_earlier=True)


def _non_empty(**fields: object) -> dict[str, object]:
    """Drop fields without a value."""
    return {name: value for name, value in fields.items() if value not in (None, "", ())}


COMMAND_BUILDERS: Final[Mapping[MessageType, CommandBuilder]] = {
    MessageType.BEAD_ACCEPTED: _claim_commands,
    MessageType.PROGRESS: _progress_commands,
    MessageType.HELP_REQUEST: _help_commands,
    MessageType.OFFERING_READY: _completion_commands,
    MessageType.DONE: _completion_commands,
    MessageType.FAILED: _failure_commands,
    MessageType.CHECKPOINT: _checkpoint_commands,
    MessageType.SPAWN_REQUEST: _spawn_commands,
}
"""Type -> builder of the commands for its task; a type that is not listed has no effect."""

APPLIED_IF_UNCHANGED: Final = frozenset({MessageType.SPAWN_REQUEST})
"""Types that still want action when the task stays as it is, so that nothing_changed is no failure.
"""


# --- effects ----------------------------------------------------------------------------------


def effect_commands(
    letter: OutgoingLetter, actor: Actor, store: Store, choices: Choices
) -> Commands:
    """Build the commands for the task and for the letters it answers; none for plain letters."""
    if letter.message.type in ANSWERS or is_reply(letter.row.subject):
        posting = _prepare_posting(letter, actor, store, choices)
        if isinstance(posting, Fault) or posting.is_echo:
            return ()
        message, answers = posting.message, tuple(_answer_commands(posting, actor))
        if message.type is MessageType.HELP_RESPONSE and not answers:
            # What was not asked by letter is answered by one all the same.
            notice = replace(to_notice(letter), task=message.bead_id)
            return help_commands(notice, actor, store, posting.command)
    else:
        message, answers = resolve_bead(letter, store), ()
    build = COMMAND_BUILDERS.get(message.type)
    if build is None:
        return answers
    if not message.bead_id:
        detail = f"{message.type} names no bead, so that it changes no task: write Bead: ID in it"
        return (RejectMessage("invalid_field", detail, kind=message.type),)
    if message.type is MessageType.SPAWN_REQUEST and (reason := dispatch_objection(actor.label)):
        return (RejectMessage("not_authorized", reason, message.bead_id, message.type),)
    return (*_adopt_commands(message, actor, choices), *build(message, actor, choices))


def _answer_commands(posting: _Posting, actor: Actor) -> Iterator[Command]:
    """Answer the questions of its thread whose sender it goes to."""
    mail, type = posting.command, posting.message.type
    if posting.is_repeat and type in ANSWERS:
        detail = f"{type} {mail.id} was sent before: its answers were applied then"
        yield RejectMessage("already_exists", detail, kind=type)
    questions = [one for one in posting.replied_to if _is_answer_to(posting.message, actor, one)]
    reachable = [
        one for one in questions if one.thread == mail.thread and one.sender in (*mail.to, *mail.cc)
    ]
    if questions and not reachable:
        detail = (
            f"{type} does not answer {questions[-1].id}: send it to {questions[-1].sender}, "
            f"in the thread {questions[-1].thread}"
        )
        yield RejectMessage("invalid_field", detail, kind=type)
    roles = ANSWER_ROLES.get(type, ())
    own = [one for one in reachable if one.is_recipient(actor.name) or actor.role in roles]
    for one in own or reachable:
        text = posting.message.parsed.guidance or mail.body
        yield AnswerMail(one.id, mail.id, roles, _shorten(text))
