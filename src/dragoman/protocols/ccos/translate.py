"""Translate CCOS messages and arguments to commands, all or none."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent, significant_words
from dragoman.core.attempt import ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent
from dragoman.core.intent.candidate import Candidate, Requirements, ScoreParts
from dragoman.core.intent.results import result_digest
from dragoman.core.intent.state import CancelIntent, DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.limits import MAX_REASON, MAX_SKILL_LENGTH, MAX_SKILLS
from dragoman.core.task_state import INTENT_ALIAS_KIND, UpdateTask
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import Facts, Fault, fault_from_refusal
from dragoman.engine.queries.agents import find_agent, find_reputation
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands
from dragoman.protocols.ccos.parse import InvalidResult
from dragoman.protocols.ccos.settings import Choices
from dragoman.protocols.ccos.wire import (
    AgentTerms,
    Cancel,
    Delegate,
    Discover,
    Register,
    TaskRequest,
    TaskResult,
    TaskUpdate,
    extra_fields,
)
from dragoman.text.error_messages import shape_fault
from dragoman.text.safe_text import safe_text
from dragoman.text.strict_json import StrictJsonError, parse_json

MAX_CARD_BYTES: Final = 256 * 1024

_MAX_NAME_CHARS: Final = 64

_MAX_QUOTED_CHARS: Final = 40

_NON_NAME_CHARS: Final = re.compile(r"[^a-z0-9._-]+")

Words = Annotated[str, Meta(max_length=10_000)]


class Skill(Struct, frozen=True):
    """A skill of the agent."""

    id: Words = ""
    name: Words = ""
    tags: tuple[Words, ...] = ()


class Interface(Struct, frozen=True, rename="camel"):
    """An endpoint of the agent."""

    url: Words
    protocol_binding: Words = ""


class Card(Struct, frozen=True, rename="camel"):
    """The relevant parts of a card, of A2A 0.3 and 1.0."""

    name: Words
    skills: tuple[Skill, ...] = ()
    description: Words = ""
    version: Words = ""
    url: Words = ""
    preferred_transport: Words = ""
    supported_interfaces: tuple[Interface, ...] = ()


class InvalidCard(ValueError):
    """A card that cannot be used, with the reason."""


class CardAgent(Struct, frozen=True):
    """An agent as its card presents it."""

    name: str
    """The card's name in the form of an agent name."""
    title: str
    skills: tuple[str, ...]
    url: str
    """Address of the agent; empty: the card does not say."""
    binding: str
    """Its protocol, in the terms of A2A, such as JSONRPC."""
    version: str
    meaningless: tuple[str, ...] = ()
    """Skills that are only stop words, such as `agent`: they are left out."""
    too_long: tuple[str, ...] = ()
    """Texts that are too long for a tag or a name: they are left out too."""

    def skipped_skills(self) -> Iterator[str]:
        """Remarks on skills that are left out."""
        if self.meaningless:
            yield (
                f"words that say nothing were left out of its skills: {', '.join(self.meaningless)}"
            )
        if self.too_long:
            begin = ", ".join(f"{words[:_MAX_QUOTED_CHARS]}…" for words in self.too_long)
            yield (
                f"what has more than {MAX_SKILL_LENGTH} characters was left out of its "
                f"skills: {begin}"
            )


def parse_card(data: bytes, name: str = "") -> CardAgent:
    """Parse a card; the agent gets this name or its own. Raises InvalidCard."""
    try:
        card = msgspec.convert(parse_json(data, MAX_CARD_BYTES), Card)
    except (StrictJsonError, msgspec.ValidationError) as error:
        raise InvalidCard(f"this is not an agent card: {shape_fault(error, Card)}") from None
    agent_name = name or to_agent_name(card.name)
    malformed = check_agent(agent_name)
    if malformed is not None:
        raise InvalidCard(
            f"the agent cannot be called {agent_name[:40]!a}: give it a name with --name"
        )
    named = _skill_texts(card)
    short = [words for words in named if len(words) <= MAX_SKILL_LENGTH]
    skills = tuple(words for words in short if significant_words(words))
    if not skills:
        raise InvalidCard(
            f"the card of {agent_name} names no skill: nothing could be delegated to it"
        )
    if len(skills) > MAX_SKILLS:
        raise InvalidCard(
            f"the card of {agent_name} names {len(skills)} skills (ids, names and tags); an "
            "agent may "
            f"have {MAX_SKILLS}: register it with those that matter (dragoman agent add, "
            "ccos.register)"
        )
    interface = next(iter(card.supported_interfaces), Interface(card.url, card.preferred_transport))
    return CardAgent(
        name=agent_name,
        title=_plain_text(card.name),
        skills=skills,
        url=_plain_text(interface.url),
        binding=_plain_text(interface.protocol_binding),
        version=_plain_text(card.version),
        meaningless=tuple(words for words in short if not significant_words(words)),
        too_long=tuple(words for words in named if len(words) > MAX_SKILL_LENGTH),
    )


def to_agent_name(title: str) -> str:
    """A title in the form of a name: Route Planner (EU) -> route-planner-eu."""
    return _NON_NAME_CHARS.sub("-", title.lower()).strip("-._")[:_MAX_NAME_CHARS]


def _skill_texts(card: Card) -> list[str]:
    """Ids, names and tags of all skills, each once, in order."""
    words = (word for skill in card.skills for word in (skill.id, skill.name, *skill.tags))
    seen = dict.fromkeys(_plain_text(word).lower() for word in words)
    return [word for word in seen if word]


def _plain_text(text: str) -> str:
    return safe_text(text, one_line=True).strip()


# --- registry ---------------------------------------------------------------------------------

NAME = "ccos"


def register_commands(args: Register, facts: Facts) -> Commands:
    """Register an agent that is unknown, and describe its skills."""
    described = _describe_command(args.agent_id, args.skills, args, args.reach)
    return (*_register_if_new(args.agent_id, args.speaks, facts), described)


def discover_commands(args: Discover, facts: Facts) -> Commands | Fault:
    """Register the agent of a card; a new one is not trusted yet."""
    try:
        found = parse_card_argument(args)
    except InvalidCard as error:
        return Fault("invalid_field", str(error), "card")
    known, reputation = (
        find_agent(facts.store, found.name),
        find_reputation(facts.store, found.name),
    )
    descriptor = None if reputation is None else reputation.descriptor
    is_the_same = descriptor is not None and descriptor.reach == found.url
    if known is not None and not is_the_same and not args.agent_id:
        return Fault(
            "already_exists",
            f"somebody else is called {found.name} here, and is not reached at {found.url}: give "
            "the card's agent another name, or say that one if it has moved there",
            "card",
        )
    # Trust belongs to the address that was reached so far: nobody inherits it by a name.
    is_unproven = not is_the_same and not args.trust
    terms = msgspec.structs.replace(args, trust="T0") if is_unproven else args
    # Its A2A endpoint is not called by the hub: whoever transports its requests does that.
    commands = () if known is not None else (RegisterAgent(found.name),)
    return (*commands, _describe_command(found.name, found.skills, terms, found.url))


def parse_card_argument(args: Discover) -> CardAgent:
    """Parse the card of the arguments; raises InvalidCard."""
    return parse_card(msgspec.json.encode(args.card), args.agent_id)


def _register_if_new(name: str, speaks: tuple[str, ...], facts: Facts) -> Commands:
    known = find_agent(facts.store, name)
    if known is not None and speaks in ((), known.speaks):
        return ()
    return (RegisterAgent(name, known.role if known else "agent", speaks or (NAME,)),)


def _describe_command(
    name: str, skills: tuple[str, ...], terms: AgentTerms, reach: str
) -> DescribeAgent:
    return DescribeAgent(
        name,
        skills,
        terms.constraints,
        terms.locality,
        terms.trust,
        terms.cost,
        terms.latency_ms,
        terms.capacity,
        reach,
    )


# --- delegation -------------------------------------------------------------------------------


def delegate_commands(args: Delegate, facts: Facts, choices: Choices) -> Commands | Fault:
    """Delegate a goal to the best candidates."""
    now = facts.now()
    if args.within_ms and args.deadline:
        return Fault("invalid_field", "say either deadline or within_ms, not both", "within_ms")
    due_by = _parse_due_by(args.deadline or UNSET)
    if isinstance(due_by, Fault):
        return due_by
    time_limit = args.within_ms or _time_limit(due_by, now, choices)
    requirements = Requirements(args.goal, args.constraints, args.skills, time_limit)
    return (
        DelegateIntent(
            args.goal,
            args.intent_id or "",
            args.params,
            args.constraints,
            args.skills,
            time_limit,
            args.plan_id,
            args.follows,
            choices.max_agents,
            candidates=facts.registry.shortlist(
                requirements, choices.policy, now, choices.concurrency
            ),
            policy=choices.policy,
            due_by=due_by,
            max_output_bytes=choices.max_output_bytes,
        ),
    )


def request_commands(message: TaskRequest, facts: Facts, choices: Choices) -> Commands | Fault:
    """Delegate a goal to one named agent; governance applies all the same."""
    now = facts.now()
    misnamed = check_agent(message.agent_id)
    if misnamed is not None:
        return fault_from_refusal(misnamed, "agent_id")
    due_by = _parse_due_by(message.deadline)
    if isinstance(due_by, Fault):
        return due_by
    time_limit = _time_limit(due_by, now, choices)
    requirements = Requirements(message.goal, patience_ms=time_limit)
    ranked = facts.registry.rank(requirements, now, choices.policy, message.agent_id)
    unknown = Candidate(message.agent_id, 0.0, ScoreParts(), 0.0)
    named = next((one for one in ranked if one.agent == message.agent_id), unknown)
    return (
        DelegateIntent(
            message.goal,
            message.intent_id,
            message.params,
            patience_ms=time_limit,
            max_agents=1,
            candidates=(named,),
            policy=choices.policy,
            agent=message.agent_id,
            request_id=message.request_id or "",
            due_by=due_by,
            max_output_bytes=choices.max_output_bytes,
            extra_fields=extra_fields(message),
        ),
    )


def _parse_due_by(deadline: str | UnsetType) -> int | Fault:
    """Parse a deadline; 0: none. A past one is allowed here, because it may be a repeat."""
    if deadline is UNSET:
        return 0
    try:
        return parse_rfc3339(deadline)
    except ValueError as error:
        return Fault("invalid_field", str(error), "deadline")


def _time_limit(due_by: int, now: int, choices: Choices) -> int:
    return max(due_by - now, 0) if due_by else choices.patience_ms


def cancel_commands(args: Cancel, actor: Actor, facts: Facts) -> Commands | Fault:
    """Cancel the intent's task; its open request ends without feedback for the agent."""
    del actor
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    return (CancelIntent(f"{INTENT_ALIAS_KIND}:{intent.id}", args.reason),)


# --- results and updates ----------------------------------------------------------------------


def result_commands(
    message: TaskResult | InvalidResult, facts: Facts, choices: Choices
) -> Commands:
    """Translate a result; a malformed one becomes an anomaly of its intent."""
    if isinstance(message, InvalidResult):
        intent, agent, request_id = message.intent_id, message.agent_id, message.request_id
        return (ReceiveResult(intent, agent, False, request_id=request_id, fault=message.reason),)
    output = None if message.output is UNSET else message.output
    encoded = msgspec.json.encode(output, order="deterministic")
    size = len(encoded)
    is_kept = size <= choices.max_output_bytes or output is None
    # What is not stored does not enter the writer's transaction either.
    digest = (
        "" if is_kept else result_digest(message.success, msgspec.Raw(encoded), message.error_text)
    )
    if _is_plain_task(message, facts):
        omitted: dict[str, object] = {"left_out": size, "digest": digest}
        return (_report_command(message, omitted if digest else _output_details(output)),)
    command = ReceiveResult(
        message.intent_id,
        message.agent_id,
        message.success,
        output,
        message.error_text,
        message.request_id or "",
        attempt=message.attempt or 0,
        extra_fields=_storable_extra(extra_fields(message), choices),
    )
    if is_kept:
        return (command,)
    return (msgspec.structs.replace(command, output=None, left_out=size, digest=digest),)


def _storable_extra(extra: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """Further content of a result within the limit; else it is only in the original text."""
    return extra if len(msgspec.json.encode(extra)) <= choices.max_output_bytes else {}


def _is_plain_task(message: TaskResult | TaskUpdate, facts: Facts) -> bool:
    """Return whether the message is about a task without an intent (S-ADOPT the other way).

    It must come from the task's owner, or from the agent of its last report.
    """
    if not isinstance(find_intent(facts.store, message.intent_id), Refusal):
        return False
    found = find_task(facts.store, message.intent_id)
    if isinstance(found, Refusal):
        return False
    report = found.task.reported
    return message.agent_id in (found.task.assignee, report.agent if report else "")


def _output_details(output: object) -> dict[str, object]:
    return {} if output is None else {"output": output}


def _report_command(message: TaskResult, details: dict[str, object]) -> ReportOutcome:
    """Report on a task that was created in another dialect."""
    return ReportOutcome(
        message.intent_id,
        "done" if message.success else "failed",
        message.error_text[:MAX_REASON],
        details=details,
        apply=True,
        once=True,
        attempt=message.attempt or 0,
    )


def update_commands(message: TaskUpdate, facts: Facts, choices: Choices) -> Commands:
    """Translate an update; a chunk is stored if an output of its size would be."""
    progress = None if message.progress is UNSET else message.progress
    percent = progress if progress is None or progress > 1 else 100 * progress
    partial = None if message.partial is UNSET else message.partial
    is_kept = len(msgspec.json.encode(partial)) <= choices.max_output_bytes
    if _is_plain_task(message, facts):
        share = "" if percent is None else f"{percent:g} %"
        return (UpdateTask(message.intent_id, progress=share, notes=message.message or ""),)
    return (
        UpdateIntent(
            message.intent_id,
            message.agent_id,
            percent,
            message.message or "",
            message.request_id or "",
            message.sequence or 0,
            partial if is_kept else None,
            message.attempt or 0,
        ),
    )
