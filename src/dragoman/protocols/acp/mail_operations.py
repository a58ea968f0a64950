"""Operations of ACP messages: send, query the inbox, query by thread or task (S-ACP-14).

They are letters of the hub with a kind of their own and a payload as their body.
"""

from collections.abc import Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ReportOutcome
from dragoman.core.authority import MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import COORDINATOR
from dragoman.core.ids import check_agent, quote_name
from dragoman.core.limits import MAX_REASON
from dragoman.core.mail import Mail, PostMail
from dragoman.core.question_state import AskQuestion
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.help_case import HELP_WAIT_MS, help_commands
from dragoman.engine.operation import (
    Facts,
    Fault,
    LongPoll,
    Operation,
    Plan,
    always,
    fault_from_refusal,
    query_operation,
)
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import walk_list
from dragoman.engine.queries.handoffs import find_coordinators, find_handoff
from dragoman.engine.queries.mail import (
    Letter,
    MailFilter,
    MailPage,
    find_letter,
    find_thread,
    is_empty_page,
    mail_page,
    task_name_in_mail,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.queries.visibility import find_reader, visible_to
from dragoman.engine.request import Commands, Committed
from dragoman.engine.work_answers import report_commands
from dragoman.protocols.acp.answers import find_offer
from dragoman.protocols.acp.errors import REFUSAL_CODES
from dragoman.protocols.acp.notice import to_notice
from dragoman.protocols.acp.parse import parse_send, parse_shape
from dragoman.protocols.acp.render import Reply, add_metadata
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.translate import unknown_name_warnings
from dragoman.protocols.acp.wire import MESSAGE_TYPES, Inbox, Lookup, Send


def mail_operations(choices: Choices) -> Iterator[Operation]:
    """The three operations of messages."""

    def lookup(args: Lookup, actor: Actor, facts: Facts) -> Any:
        reader = find_reader(actor, choices.teamspaces)
        return _query_messages(args, actor, facts, visible_to(reader, facts.store))

    def plan(sent: Send, actor: Actor, facts: Facts) -> Plan | Fault:
        command = _check_sender(sent, actor) or _post_command(sent, actor, facts.store, choices)
        if isinstance(command, Fault):
            return command
        effect = _effect_commands(sent, command, actor, facts, choices)
        if any(isinstance(one, AskQuestion) for one in effect):
            command = replace(command, answer_wanted=True, due_in_ms=HELP_WAIT_MS)
        return Plan(
            (command,),
            effect=effect,
            follow_up=lambda reply: _add_recipient_warnings(sent, actor, facts.store, reply),
        )

    yield Operation(
        name="acp_send",
        input=Send,
        parse=parse_send,
        roles=MAY_WRITE,
        plan=plan,
        needs_io=always,
        answer_place="effect",
        reply=_send_reply,
        summary="ACP: send a typed message (status.*, knowledge.*, system.*) to agents.",
    )
    yield _query_operation("acp_inbox", Inbox, _query_inbox, "ACP: messages to you, oldest first.")
    yield _query_operation(
        "acp_query", Lookup, lookup, "ACP: look messages up by thread, task, sender."
    )


def _query_operation(name: str, shape: Any, query: Any, summary: str) -> Operation:
    wait = LongPoll(is_empty_page, "mail")
    return query_operation(
        name, shape, query, summary, wait, lambda value: parse_shape(value, shape)
    )


def _check_sender(sent: Send, actor: Actor) -> Fault | None:
    if sent.from_ in ("", actor.name):
        return None
    detail = f"{actor.name} cannot send for {quote_name(sent.from_)}"
    return Fault("identity_mismatch", detail, "from")


def _effect_commands(
    sent: Send, letter: PostMail, actor: Actor, facts: Facts, choices: Choices
) -> Commands:
    """Commands for the task of a message: the result or obstacle of the sender's work, or the
    help case that it opens or answers.
    """
    notice = to_notice(sent)
    if notice is None or not sent.task_id:
        return ()
    is_ended = sent.type in ("status.complete", "status.blocked")
    offer = find_offer(sent.task_id, actor, facts) if is_ended else None
    if offer is None:
        reported = report_commands(notice, actor, facts)
        return reported or help_commands(notice, actor, facts.store, letter)
    report = ReportOutcome(offer.task, "done", notice.text, apply=True, backoff=choices.backoff)
    if sent.type == "status.blocked":
        obstacle = notice.question or notice.text or "no reason given"
        return (replace(report, outcome="blocked", blockers=(obstacle[:MAX_REASON],)),)
    return (
        replace(report, outcome="needs_review") if notice.outcome == "needs_review" else report,
    )


def _post_command(sent: Send, actor: Actor, store: Store, choices: Choices) -> PostMail | Fault:
    if sent.type.startswith("handoff.") and (
        fault := _check_handoff_payload(sent, actor, store, choices)
    ):
        return fault
    if sent.reply_to:
        is_shown = visible_to(find_reader(actor, choices.teamspaces), store)
        replied = find_letter(store, sent.reply_to, is_shown)
        if isinstance(replied, Refusal):
            return fault_from_refusal(replied, "reply_to")
        sent = replace(sent, reply_to=replied.id)
    names = [
        name for recipient in sent.to for name in _resolve_recipient(recipient, store, choices)
    ]
    return PostMail(
        to=tuple(dict.fromkeys(names)),
        subject=f"{sent.type}: {sent.task_id}" if sent.task_id else sent.type,
        body=msgspec.json.encode(sent.payload).decode(),
        kind=sent.type,
        thread=task_name_in_mail(sent.thread_id, store),
        bead=task_name_in_mail(sent.task_id, store),
        reply_to=sent.reply_to,
    )


def _check_handoff_payload(
    sent: Send, actor: Actor, store: Store, choices: Choices
) -> Fault | None:
    """Check that the caller is a party of the handoff, and that the hash is that of its package."""
    id, stated = (str(sent.payload[name]) for name in ("handoff_id", "package_hash"))
    found = find_handoff(store, id, find_reader(actor, choices.teamspaces))
    if isinstance(found, Refusal):
        return fault_from_refusal(found, "payload.handoff_id")
    if actor.name not in (found.sender, found.recipient):
        detail = f"{actor.label} may not send a {sent.type} about {id}: that is for its two sides"
        return Fault("not_authorized", detail, "payload.handoff_id")
    if stated != found.package_hash:
        detail = f"{id} has the hash {found.package_hash}"
        return Fault("hash_mismatch", detail, "payload.package_hash")
    return None


def _resolve_recipient(name: str, store: Store, choices: Choices) -> tuple[str, ...]:
    """Resolve a recipient: the role `coordinator` can be addressed like an agent."""
    if name != COORDINATOR or find_agent(store, name) is not None:
        return (name,)
    return find_coordinators(store) or (choices.coordinator,)


def _send_reply(_: Send, __: Commands, accepted: Committed) -> Any:
    """Reply with the letter's id, and with what became of its effect on the task, if it has one."""
    receipt, declined = accepted.receipts[0], accepted.declined
    reply = {
        "success": True,
        "message_id": receipt.stream.partition(":")[2],
        "thread_id": receipt.thread,
    }
    if declined is not None:
        code = REFUSAL_CODES.get(declined.code, declined.code)
        return add_metadata(
            reply, effect={"applied": False, "code": code, "detail": declined.detail}
        )
    has_effect = len(accepted.receipts) > 1
    return add_metadata(reply, effect={"applied": True}) if has_effect else reply


def _add_recipient_warnings(sent: Send, actor: Actor, store: Store, reply: Reply) -> Reply:
    """Add warnings about recipients that nobody is registered as; somebody always stands in for the
    coordinators.
    """
    names = (name for name in dict.fromkeys(sent.to) if name != COORDINATOR)
    warnings = [warning for name in names for warning in unknown_name_warnings(name, actor, store)]
    return add_metadata(reply, warnings=warnings) if warnings else reply


def _query_inbox(args: Inbox, actor: Actor, facts: Facts) -> Any:
    inbox_list = f"unread:{actor.name}" if args.unread else f"in:{actor.name}"
    query = ListQuery(inbox_list, args.after, limit=args.limit)
    return _page_reply(
        mail_page(facts.store, query, lambda mail: _has_type(mail, args.type)), actor.name
    )


def _query_messages(args: Lookup, actor: Actor, facts: Facts, is_shown: MailFilter) -> Any:
    task = find_task(facts.store, args.task_id) if args.task_id else None
    if isinstance(task, Refusal):
        return fault_from_refusal(task, "task_id")
    malformed = next(filter(None, _name_faults(args)), None)
    if malformed is not None:
        return malformed
    thread = find_thread(args.thread_id, facts.store) if args.thread_id else ""
    if isinstance(thread, Refusal):
        return fault_from_refusal(thread, "thread_id")

    def fits(mail: Mail) -> bool:
        return (
            _has_type(mail, args.type)
            and (task is None or mail.bead in task.task.names)
            and thread in ("", mail.thread)
            and args.from_ in ("", mail.sender)
            and (not args.to or mail.is_recipient(args.to))
            and is_shown(mail)
        )

    names = sorted(task.task.names) if task else ()
    lists = (
        [f"thread:{thread}"] if thread else [],
        [f"{kind}:{name}" for name in names for kind in ("thread", "bead")],
        [f"from:{args.from_}"] if args.from_ else [],
        [f"in:{args.to or actor.name}"],
    )
    first, *more = next(filter(None, lists))
    query = ListQuery(first, args.after, limit=args.limit)
    others = (walk_list(facts.store, replace(query, list=name)) for name in more)
    merged = merge(*others, key=attrgetter("position"))
    return _page_reply(mail_page(facts.store, query, fits, merged), actor.name)


def _name_faults(args: Lookup) -> Iterator[Fault | None]:
    checks = (
        ("from", args.from_, check_agent),
        ("to", args.to, check_agent),
    )
    for field, word, check in checks:
        refusal = check(word) if word else None
        yield None if refusal is None else fault_from_refusal(refusal, field)


def _has_type(mail: Mail, type: str) -> bool:
    return mail.kind in MESSAGE_TYPES and type in ("", mail.kind)


def _page_reply(page: MailPage, reader: str) -> Any:
    return {
        "success": True,
        "messages": [_message_row(letter, reader) for letter in page.letters],
        **page.continuation,
    }


def _message_row(letter: Letter, reader: str) -> Mapping[str, Any]:
    mail = letter.mail
    return {
        "message_id": mail.id,
        "type": mail.kind,
        "from": mail.sender,
        "to": mail.to,
        "thread_id": mail.thread,
        "task_id": mail.bead,
        "payload": _decode_payload(mail.body),
        "sent_at": to_rfc3339(mail.posted_at),
        "read": reader in mail.read_by,
        "position": letter.position,
    }


def _decode_payload(body: str) -> Mapping[str, Any]:
    """Decode the payload; a letter of this kind may have been written by hand."""
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        decoded = None
    return cast(dict[str, Any], decoded) if isinstance(decoded, dict) else {"text": body}
