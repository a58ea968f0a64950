"""Agents and people: registration, credentials, pause, capabilities, reputation (S-ROLE, S-CCOS-5).

An agent has two streams: `agent:NAME` holds its role, key, tokens and pause; `reputation:NAME`
holds its capabilities and its reputation, which change with each piece of work.
"""

import re
from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from math import isfinite, sqrt
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import limits, not_found
from dragoman.core.actor import HUB_NAME, HUB_NAME_TAKEN, Actor
from dragoman.core.authority import MAY_MANAGE_CREDENTIALS, MAY_PAUSE, MAY_REGISTER, MAY_RESUME
from dragoman.core.base import Command, Event, Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import (
    agent_stream,
    check_agent,
    check_spoken_dialect,
    reputation_stream,
)
from dragoman.core.presence import PresenceReported, Sessions, with_presence
from dragoman.core.read import Decision, Read, Receipt
from dragoman.core.timestamps import TIMESTAMP_RANGE, to_rfc3339
from dragoman.text.base64url import decode_base64url
from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.search_terms import extract_words

SAOP_ROLES: Final = ("researcher", "architect", "developer", "reviewer")
"""SAOP roles: an agent with such a name plays it, unless another is registered."""


# --- commands ---------------------------------------------------------------------------------

Trust = Literal["T0", "T1", "T2"]
"""Trust in an agent: T0 unproven, T1 usual, T2 full."""

TIERS: tuple[Trust, ...] = ("T0", "T1", "T2")
"""Trust tiers, the lowest first."""

DEFAULT_PAUSE_REASON = "paused by hand"
"""Reason of a pause where none is given."""


class RegisterAgent(Command, frozen=True, tag="agent.register"):
    """Make a name known, with its role and the dialects that it speaks."""

    name: str
    role: Role = "agent"
    speaks: tuple[str, ...] = ()
    saop_role: str | None = None
    """Its SAOP role in traces; empty: its name, where that is one; None: unchanged."""


class SetAgentKey(Command, frozen=True, tag="agent.key"):
    """Set the key with which a known agent signs; an empty one removes it."""

    name: str
    key: str
    """Public half of an Ed25519 key, 32 bytes in base64url."""


class IssueToken(Command, frozen=True, tag="token.issue"):
    """Let the bearer of a token speak for a known agent; the token itself stays with its maker."""

    name: str
    id: str
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    expires_at: int


class RevokeToken(Command, frozen=True, tag="token.revoke"):
    """Revoke a token of an agent; an empty id revokes all that were issued so far."""

    name: str
    id: str = ""


class PauseAgent(Command, frozen=True, tag="agent.pause"):
    """Give no more work to a known agent; its running work continues."""

    free_text = ("reason",)

    name: str
    reason: str = DEFAULT_PAUSE_REASON
    until: int | None = None
    """Time at which it resumes by itself; None: only on request."""


class ResumeAgent(Command, frozen=True, tag="agent.resume"):
    """Give work to a paused agent again; no-op for one that is not paused."""

    name: str


class DescribeAgent(Command, frozen=True, tag="agent.describe"):
    """Describe what a known agent can do, and on which terms; replaces the last description."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    trust: Trust | None = None
    """None: the tier it has, or else what the caller may give: T1, and T0 from the agent itself."""
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""


# --- events -----------------------------------------------------------------------------------


class AgentRegistered(Event, frozen=True):
    """An agent or a person is known by this name, in this role, and speaks these dialects."""

    name: str
    role: Role
    speaks: tuple[str, ...] = ()
    saop_role: str = ""
    """Its SAOP role in traces, where that is not its name; empty: none."""


class AgentKeySet(Event, frozen=True):
    """The agent signs with this public key; empty: with none from now on."""

    key: str
    """Ed25519, 32 bytes in base64url; the one before has ended."""


class TokenIssued(Event, frozen=True):
    """A token speaks for the agent until it expires or is revoked; only its digest is kept."""

    id: str
    digest: str
    expires_at: int


class TokenRevoked(Event, frozen=True):
    """A token no longer speaks for the agent."""

    id: str = ""
    """Empty: all that were issued so far, those of attempts included."""


class AgentPaused(Event, frozen=True):
    """The agent gets no more work, until a time if there is one, or until it resumes."""

    reason: str
    until: int | None = None


class AgentResumed(Event, frozen=True):
    """The agent is started again."""


class AgentDescribed(Event, frozen=True):
    """Capabilities and terms of an agent; replaces the last description."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    """Places where it works on data."""
    trust: Trust = "T0"
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""
    """Endpoint of the agent: the queue, a program, a URL."""


class AgentAssigned(Event, frozen=True):
    """An agent was given a request."""

    name: str
    intent: str
    request_id: str


class AgentRelieved(Event, frozen=True):
    """A request was taken from an agent through no fault of its own: its reputation stays."""

    name: str
    intent: str
    request_id: str
    in_review: bool = False
    """It stays the agent's, and takes up none of its capacity while its task is in review."""


class AgentRated(Event, frozen=True):
    """The result of an agent's request counted towards its reputation."""

    name: str
    intent: str
    request_id: str
    success: bool
    duration_ms: int


# --- tokens -----------------------------------------------------------------------------------

# Both ends have a fixed length, so that an underscore in name or secret is not ambiguous.
_TOKEN_RE: Final = lazy_regex(
    r"drg_([A-Za-z0-9][A-Za-z0-9._@-]{0,256})_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII
)

_TOKEN_ID_RE: Final = lazy_regex(r"[0-9a-f]{12}", re.ASCII)

_TOKEN_DIGEST_RE: Final = lazy_regex(r"[0-9a-f]{64}", re.ASCII)


class TokenClaim(Struct, frozen=True):
    """Agent and id that a token claims. Its digest shows if that is true."""

    agent: str
    id: str


def format_token(agent: str, token_id: str, secret: str) -> str:
    """Format a token, as its agent is given it, once."""
    return f"drg_{agent}_{token_id}_{secret}"


def parse_token(text: str) -> TokenClaim | None:
    found = _TOKEN_RE.fullmatch(text)
    if found is None or check_agent(found[1]):
        return None
    return TokenClaim(found[1], found[2])


def digest_token(token: str) -> str:
    """Digest that is stored of a token. 256 bits of secret need no salt or slow hash."""
    return sha256(token.encode()).hexdigest()


def check_token_id(text: str) -> Refusal | None:
    """Refuse unless `text` can be the id of a token."""
    if _TOKEN_ID_RE.fullmatch(text):
        return None
    # Not quoted: it may be the token itself, by mistake.
    return Refusal("invalid_id", "this is not the id of a token: it has 12 of the digits 0-9 a-f")


def check_token_digest(text: str) -> Refusal | None:
    """Refuse unless `text` can be the digest of a token."""
    if _TOKEN_DIGEST_RE.fullmatch(text):
        return None
    return Refusal("invalid_field", "digest is not a SHA-256 in hexadecimal, 64 digits 0-9 a-f")


# --- record: role, key, tokens, pause ---------------------------------------------------------

REMEMBERED_TOKENS = 64
"""Ended tokens that are remembered, the latest, so that their bearers are told so."""


class TokenRecord(Struct, frozen=True, omit_defaults=True):
    """An issued token, known by its digest only."""

    id: str
    digest: str
    issued_at: int
    expires_at: int
    is_revoked: bool = False

    def is_valid(self, now: int) -> bool:
        """True if it still speaks for its agent."""
        return not self.is_revoked and now < self.expires_at


class Pause(Struct, frozen=True, omit_defaults=True):
    """Pause of an agent: its reason, its start, and its end if that is known."""

    reason: str
    since: int
    until: int | None = None

    def is_active(self, now: int) -> bool:
        """True unless it has ended by itself."""
        return self.until is None or now < self.until


def describe_pause(until: int | None) -> str:
    """Describe a pause by its end, if that is known."""
    return "paused" if until is None else f"paused until {to_rfc3339(until)}"


class AgentRecord(Struct, frozen=True, omit_defaults=True):
    """A name that the hub knows: its role, its dialects, its key and tokens."""

    name: str
    role: Role
    speaks: tuple[str, ...]
    registered_at: int
    """Time of its first registration."""
    key: str = ""
    """Public half of the key that it signs with, if it has one."""
    tokens: tuple[TokenRecord, ...] = ()
    cut_off_at: int | None = None
    """Time at which all of its tokens were revoked: none issued until then is valid, whether it is
    on this list or not."""
    pause: Pause | None = None
    """The last pause, which may have ended by itself."""
    saop_role: str = ""
    """Its SAOP role in traces; empty: its name, where that is one."""
    sessions: Sessions = ()
    """Presence of its sessions, the last to report at the end."""

    @property
    def dialects(self) -> tuple[str, ...]:
        """Names of the dialects that it speaks, in whichever versions."""
        return tuple(one.partition("/")[0] for one in self.speaks)

    def active_pause(self, now: int) -> Pause | None:
        """The pause that is in force."""
        return self.pause if self.pause is not None and self.pause.is_active(now) else None

    def current_sessions(self, now: int) -> Sessions:
        """Sessions whose presence still counts."""
        return tuple(one for one in self.sessions if one.is_current(now))

    def valid_tokens(self, now: int) -> list[TokenRecord]:
        return [token for token in self.tokens if token.is_valid(now)]


def agent_list_keys(record: AgentRecord) -> tuple[str, ...]:
    """Keys of the lists it stands on: all agents of its role."""
    return (f"role:{record.role}",)


def fold_registered(record: AgentRecord | None, event: AgentRegistered, at: int) -> AgentRecord:
    """Register; a later registration replaces an earlier one."""
    if record is None:
        return AgentRecord(event.name, event.role, event.speaks, at, saop_role=event.saop_role)
    return replace(
        record, name=event.name, role=event.role, speaks=event.speaks, saop_role=event.saop_role
    )


def fold_key_set(record: AgentRecord, event: AgentKeySet, _: int) -> AgentRecord:
    """Set the key; the one before ends at once."""
    return replace(record, key=event.key)


def fold_token_issued(record: AgentRecord, event: TokenIssued, at: int) -> AgentRecord:
    """Add a token; the oldest that have ended make room for it."""
    token = TokenRecord(event.id, event.digest, at, event.expires_at)
    ended = [known.id for known in record.tokens if not known.is_valid(at)]
    too_many = len(record.tokens) + 1 - REMEMBERED_TOKENS
    forgotten = frozenset(ended[: max(0, too_many)])
    kept = tuple(known for known in record.tokens if known.id not in forgotten)
    return replace(record, tokens=(*kept, token))


def fold_token_revoked(record: AgentRecord, event: TokenRevoked, at: int) -> AgentRecord:
    """Revoke one token, or all of them."""
    tokens = tuple(
        replace(token, is_revoked=True) if event.id in ("", token.id) else token
        for token in record.tokens
    )
    return replace(record, tokens=tokens, cut_off_at=record.cut_off_at if event.id else at)


def fold_paused(record: AgentRecord, event: AgentPaused, at: int) -> AgentRecord:
    """Pause; a later pause replaces an earlier one."""
    return replace(record, pause=Pause(event.reason, at, event.until))


def fold_resumed(record: AgentRecord, _: AgentResumed, __: int) -> AgentRecord:
    return replace(record, pause=None)


def fold_presence(record: AgentRecord, event: PresenceReported, at: int) -> AgentRecord:
    return replace(record, sessions=with_presence(record.sessions, event, at))


AGENT_FOLDS: dict[type[Event], Callable[[Any, Any, int], AgentRecord]] = {
    AgentRegistered: fold_registered,
    AgentKeySet: fold_key_set,
    TokenIssued: fold_token_issued,
    TokenRevoked: fold_token_revoked,
    AgentPaused: fold_paused,
    AgentResumed: fold_resumed,
    PresenceReported: fold_presence,
}
"""Event -> fold: the record after it, from the record before it (None at first) and its time."""


# --- reputation: capabilities and results -----------------------------------------------------

REMEMBERED_RESULTS: Final = 32
"""Latest results that count: what an agent did long ago is forgotten."""

EVIDENCE_HALF_LIFE_MS: Final = 7 * 86_400_000
"""With each whole week without a result, the evidence about an agent weighs half as much."""

_MAX_HALF_LIVES: Final = 60

_SUCCESS, _FAILURE = "1", "0"


class AgentDescriptor(Struct, frozen=True, omit_defaults=True):
    """Capabilities of an agent, its terms, and its endpoint."""

    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    trust: Trust = "T0"
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    """Requests it takes on at a time; 0: any number."""
    reach: str = ""


class Reputation(Struct, frozen=True, omit_defaults=True):
    """Capabilities and record of an agent in the registry."""

    name: str
    descriptor: AgentDescriptor | None = None
    """None: not described, so that it is no candidate."""
    successes: int = 0
    failures: int = 0
    recent: str = ""
    """Latest results, oldest first: 1 for a success, 0 for a failure."""
    rated_at: int = 0
    """Time of the last result."""
    latency_ms: int = 0
    """Moving average of the duration of its requests."""
    assigned: int = 0
    """Requests it was ever given."""
    open: int = 0
    """Requests it has not finished, except those in review."""
    in_review: tuple[str, ...] = ()
    """Ids of its requests whose tasks are in review."""

    def is_at_capacity(self, capacity: int) -> bool:
        """True if it has as many requests as it takes on at a time; 0: unlimited."""
        return 0 < capacity <= self.open

    def evidence(self, now: int) -> "Evidence":
        """Evidence of its latest results for the next one."""
        weeks = min(max(now - self.rated_at, 0) // EVIDENCE_HALF_LIFE_MS, _MAX_HALF_LIVES)
        weight = 0.5**weeks  # a power of two: the same on every machine
        return Evidence(len(self.recent) * weight, self.recent.count(_SUCCESS) * weight)


class Evidence(Struct, frozen=True, gc=False):
    """Number of results and of successes; older ones may count in part."""

    samples: float
    successes: float

    @property
    def lower_bound(self) -> float:
        """Lower bound of the success rate (Wilson, one sigma)."""
        return self._bounds()[0]

    @property
    def upper_bound(self) -> float:
        """Upper bound of the success rate."""
        return self._bounds()[1]

    def _bounds(self) -> tuple[float, float]:
        samples, successes = self.samples, self.successes
        if not samples:
            return 0.0, 1.0
        center = (successes + 0.5) / (samples + 1)
        margin = sqrt(successes * (samples - successes) / samples + 0.25) / (samples + 1)
        return max(0.0, center - margin), min(1.0, center + margin)


def reputation_list_keys(reputation: Reputation) -> tuple[str, ...]:
    """Keys of the lists it stands on: the roster of all candidates."""
    return () if reputation.descriptor is None else ("roster",)


def _fold_described(reputation: Reputation | None, event: AgentDescribed, _: int) -> Reputation:
    name, *described = msgspec.structs.astuple(event)
    return replace(reputation or Reputation(name), descriptor=AgentDescriptor(*described))


def _fold_assigned(reputation: Reputation | None, event: AgentAssigned, _: int) -> Reputation:
    reputation_before = reputation or Reputation(event.name)
    return replace(
        reputation_before, assigned=reputation_before.assigned + 1, open=reputation_before.open + 1
    )


def _fold_relieved(reputation: Reputation, event: AgentRelieved, _: int) -> Reputation:
    ended = _without_request(reputation, event.request_id)
    if not event.in_review:
        return ended
    return replace(ended, in_review=(*ended.in_review, event.request_id))


def _without_request(reputation: Reputation, request_id: str) -> Reputation:
    """One open request less; one in review counts no more already."""
    in_review = tuple(one for one in reputation.in_review if one != request_id)
    is_open = len(in_review) == len(reputation.in_review)
    return replace(reputation, open=reputation.open - is_open, in_review=in_review)


def _fold_rated(reputation: Reputation, event: AgentRated, at: int) -> Reputation:
    recent = (reputation.recent + (_SUCCESS if event.success else _FAILURE))[-REMEMBERED_RESULTS:]
    is_first = not reputation.recent
    latency_ms = (
        event.duration_ms if is_first else (7 * reputation.latency_ms + event.duration_ms) // 8
    )
    return replace(
        _without_request(reputation, event.request_id),
        successes=reputation.successes + event.success,
        failures=reputation.failures + (not event.success),
        recent=recent,
        rated_at=at,
        latency_ms=latency_ms,
    )


REPUTATION_FOLDS: dict[type[Event], Callable[[Any, Any, int], Reputation]] = {
    AgentDescribed: _fold_described,
    AgentAssigned: _fold_assigned,
    AgentRelieved: _fold_relieved,
    AgentRated: _fold_rated,
}
"""Event -> fold: the reputation after it, from the one before it (None at first) and its time."""

_STOP_WORDS: Final = (
    "a all am an and any anything are as at be best by can do every everything for from good has "
    "have i in is it me most my of on or our that the this to top use we with you your agent "
    "agents expert"
)

STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words that occur in any goal, or that any agent may claim: naming them is no match."""


def significant_words(text: str) -> frozenset[str]:
    """Words of a text that are not stop words."""
    return frozenset(extract_words(text)) - STOP_WORDS


# --- registration -----------------------------------------------------------------------------

_REGISTRATION_RECEIPT = Receipt("", None)


def decide_register_agent(command: RegisterAgent, read: Read, _: int) -> Decision | Refusal:
    """Register a name, or change what is known of it. The same again is a no-op."""
    refusal = (
        check_agent(command.name, "name")
        or _check_hub_name(command.name, read.actor)
        or limits.check_count("speaks", command.speaks, limits.MAX_DIALECTS)
        or next(filter(None, map(check_spoken_dialect, command.speaks)), None)
        or _check_saop_role(command.saop_role)
    )
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_registrar(command, known, read.actor)
    if refusal:
        return refusal
    known_plays = known.saop_role if known is not None else ""
    plays = known_plays if command.saop_role is None else command.saop_role
    if plays != known_plays and read.actor.role == "agent":
        return Refusal("not_authorized", f"{read.actor.label} may not choose its SAOP role")
    speaks = tuple(dict.fromkeys(command.speaks))
    event = AgentRegistered(command.name, command.role, speaks, plays)
    if known is not None and (known.role, known.speaks, known.saop_role) == (
        event.role,
        event.speaks,
        event.saop_role,
    ):
        return Decision(_REGISTRATION_RECEIPT)
    return Decision(_REGISTRATION_RECEIPT, ((agent_stream(command.name), event),))


def _check_hub_name(name: str, actor: Actor) -> Refusal | None:
    if name != HUB_NAME or actor.role == "system":
        return None
    return Refusal("invalid_field", HUB_NAME_TAKEN, path="name")


def _check_saop_role(part: str | None) -> Refusal | None:
    if not part or part in SAOP_ROLES:
        return None
    return Refusal(
        "invalid_field", f"{part[:40]!a} is no SAOP role; known: {', '.join(SAOP_ROLES)}"
    )


def _check_registrar(
    command: RegisterAgent, known: AgentRecord | None, actor: Actor
) -> Refusal | None:
    """Refuse a caller that gives or takes a role that it may not give."""
    givable = MAY_REGISTER[actor.role]
    if actor.role == "agent" and command.name != actor.name:
        return Refusal(
            "not_authorized", f"{actor.label} may register itself only, not {command.name}"
        )
    role_before = command.role if known is None else known.role
    for role in (command.role, role_before):
        if role not in givable:
            return Refusal(
                "not_authorized",
                f"{actor.label} may not give or take the role {role}: {command.name}",
            )
    return None


# --- credentials ------------------------------------------------------------------------------

_CREDENTIAL_RECEIPT: Final = Receipt("", None)

_KEY_BYTES: Final = 32


def decide_issue_token(command: IssueToken, read: Read, now: int) -> Decision | Refusal:
    """Register one more token of an agent. The same again is a no-op."""
    malformed = check_token_id(command.id) or check_token_digest(command.digest)
    known = malformed or _find_manageable(command.name, read)
    if isinstance(known, Refusal):
        return known
    same = [token for token in known.tokens if token.id == command.id]
    if same and (same[0].digest, same[0].expires_at) == (command.digest, command.expires_at):
        return Decision(_CREDENTIAL_RECEIPT)
    if same:
        return Refusal("already_exists", f"{command.name} has a different token {command.id}")
    # A token of the shortest lifetime may have been under way for a moment.
    if not 0 < command.expires_at - now <= limits.TOKEN_LIFETIME_RANGE_MS[1]:
        return Refusal(
            "invalid_field",
            f"expires_at: {to_rfc3339(command.expires_at)} is past, or more than 366 days ahead",
        )
    if len(known.valid_tokens(now)) >= limits.MAX_TOKENS:
        return Refusal(
            "invalid_field",
            f"{command.name} has {limits.MAX_TOKENS} valid tokens, which is the limit: "
            "revoke those that are not used",
        )
    return _credential_decision(
        command.name, TokenIssued(command.id, command.digest, command.expires_at)
    )


def decide_revoke_token(command: RevokeToken, read: Read, _: int) -> Decision | Refusal:
    """Revoke one token of an agent, or all so far. An agent may revoke its own."""
    known = _find_manageable(command.name, read, is_own_enough=True)
    if isinstance(known, Refusal):
        return known
    if not command.id:
        # Always recorded: tokens of attempts are not on the list, and some may have been issued.
        return _credential_decision(command.name, TokenRevoked())
    malformed = check_token_id(command.id)
    if malformed is not None:
        return malformed
    token = next((token for token in known.tokens if token.id == command.id), None)
    if token is None:
        return not_found.token(command.name, command.id)
    if token.is_revoked:
        return Decision(_CREDENTIAL_RECEIPT)
    return _credential_decision(command.name, TokenRevoked(command.id))


def decide_set_key(command: SetAgentKey, read: Read, _: int) -> Decision | Refusal:
    """Set or remove the key an agent signs with; the one before ends at once.

    The same key again is a no-op. An agent may remove its own key, as it may revoke its own tokens.
    """
    malformed = _check_key(command.key) if command.key else None
    known = malformed or _find_manageable(command.name, read, is_own_enough=not command.key)
    if isinstance(known, Refusal):
        return known
    if known.key == command.key:
        return Decision(_CREDENTIAL_RECEIPT)
    return _credential_decision(command.name, AgentKeySet(command.key))


def _find_manageable(
    name: str, read: Read, *, is_own_enough: bool = False
) -> AgentRecord | Refusal:
    """Record of an agent whose credentials the caller may manage, or a refusal."""
    malformed = check_agent(name)
    if malformed is not None:
        return malformed
    actor = read.actor
    known = read.agent(name)
    is_own = is_own_enough and actor.role == "agent" and actor.name == name
    if not MAY_MANAGE_CREDENTIALS[actor.role] and not is_own:
        return Refusal("not_authorized", f"{actor.label} may not manage credentials")
    if known is None:
        return not_found.agent(name)
    if known.role not in MAY_MANAGE_CREDENTIALS[actor.role] and not is_own:
        return Refusal(
            "not_authorized",
            f"{actor.label} may not manage credentials of {name}, whose role is {known.role}",
        )
    return known


def _check_key(text: str) -> Refusal | None:
    raw = decode_base64url(text)
    if raw is not None and len(raw) == _KEY_BYTES:
        return None
    return Refusal("invalid_field", "key is not the public half of an Ed25519 key in base64url")


def _credential_decision(name: str, event: Event) -> Decision:
    return Decision(_CREDENTIAL_RECEIPT, ((agent_stream(name), event),))


# --- pause ------------------------------------------------------------------------------------

_PAUSE_RECEIPT = Receipt("", None)


def decide_pause_agent(command: PauseAgent, read: Read, _: int) -> Decision | Refusal:
    """Pause an agent: it gets no more work. The same pause again is a no-op."""
    refusal = limits.check_text("reason", command.reason, limits.MAX_REASON, minimum=1) or (
        None
        if command.until is None
        else limits.check_range("until", command.until, *TIMESTAMP_RANGE)
    )
    known = refusal or _find_pausable(command.name, MAY_PAUSE, "pause", read)
    if isinstance(known, Refusal):
        return known
    current = known.pause
    if current is not None and (current.reason, current.until) == (command.reason, command.until):
        return Decision(_PAUSE_RECEIPT)
    return _pause_decision(command.name, AgentPaused(command.reason, command.until))


def decide_resume_agent(command: ResumeAgent, read: Read, now: int) -> Decision | Refusal:
    """Resume an agent; no-op for one that is not paused."""
    known = _find_pausable(command.name, MAY_RESUME, "resume", read)
    if isinstance(known, Refusal):
        return known
    if known.active_pause(now) is None:
        return Decision(_PAUSE_RECEIPT)
    return _pause_decision(command.name, AgentResumed())


def _find_pausable(
    name: str, roles: Collection[Role], verb: str, read: Read
) -> AgentRecord | Refusal:
    """Record of an agent that the caller may pause or resume, or a refusal."""
    malformed = check_agent(name)
    if malformed is not None:
        return malformed
    if read.actor.role not in roles:
        return Refusal("not_authorized", f"{read.actor.label} may not {verb} agents")
    return read.agent(name) or not_found.agent(name)


def _pause_decision(name: str, event: AgentPaused | AgentResumed) -> Decision:
    return Decision(_PAUSE_RECEIPT, ((agent_stream(name), event),))


# --- capabilities -----------------------------------------------------------------------------


def decide_describe_agent(command: DescribeAgent, read: Read, _: int) -> Decision | Refusal:
    """Describe an agent's capabilities, or change them. The same again is a no-op."""
    refusal = next(filter(None, _iter_description_faults(command)), None)
    if refusal:
        return refusal
    known = read.agent(command.name)
    refusal = _check_describer(command.name, known, read.actor)
    if refusal:
        return refusal
    reputation = read.reputation(command.name)
    descriptor = AgentDescriptor(
        tuple(dict.fromkeys(command.skills)),
        tuple(dict.fromkeys(command.constraints)),
        tuple(dict.fromkeys(command.locality)),
        _granted_trust(command.trust, reputation, read.actor),
        float(command.cost),  # an int would be read back as another number than was stored
        command.latency_ms,
        command.capacity,
        command.reach,
    )
    if read.actor.role == "agent" and reputation is not None and reputation.descriptor is not None:
        descriptor = _restrict_to_known(descriptor, reputation.descriptor)
    receipt = Receipt("", None, stream=reputation_stream(command.name))
    if reputation is not None and reputation.descriptor == descriptor:
        return Decision(receipt)
    event = AgentDescribed(command.name, *msgspec.structs.astuple(descriptor))
    return Decision(receipt, ((reputation_stream(command.name), event),))


def _granted_trust(requested: Trust | None, reputation: Reputation | None, actor: Actor) -> Trust:
    """Tier that the caller may give: an agent's own word never raises what it has."""
    current = reputation.descriptor.trust if reputation and reputation.descriptor else None
    if actor.role != "agent":
        return requested or current or "T1"
    own: Trust = current or "T0"
    return own if requested is None else TIERS[min(TIERS.index(requested), TIERS.index(own))]


def _restrict_to_known(claimed: AgentDescriptor, known: AgentDescriptor) -> AgentDescriptor:
    """Restrict what an agent claims about itself to what was vouched for.

    Governance rests on these terms: the agent may tighten them, others loosen them. At T0 nobody
    vouches for anything, and its word is all there is.
    """
    if claimed.trust == "T0":
        return claimed
    capacities = [most for most in (claimed.capacity, known.capacity) if most]
    return replace(
        claimed,
        skills=_intersect(claimed.skills, known.skills) or known.skills,
        constraints=_intersect(claimed.constraints or known.constraints, known.constraints),
        locality=_intersect(claimed.locality or known.locality, known.locality),
        cost=max(claimed.cost, known.cost),
        latency_ms=max(claimed.latency_ms, known.latency_ms),
        capacity=min(capacities, default=0),
    )


def _intersect(claimed: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for one in claimed if one in known)


def _check_describer(name: str, known: AgentRecord | None, actor: Actor) -> Refusal | None:
    if known is None:
        return not_found.agent(name)
    if actor.role == "agent" and actor.name != name:
        return Refusal("not_authorized", f"{actor.label} may describe itself only, not {name}")
    if known.role not in MAY_REGISTER[actor.role]:
        return Refusal(
            "not_authorized", f"{actor.label} may not describe {name}, whose role is {known.role}"
        )
    return None


def _iter_description_faults(command: DescribeAgent) -> Iterator[Refusal | None]:
    yield check_agent(command.name, "name")
    if not command.skills:
        yield Refusal("invalid_field", "skills is empty; name at least one", path="skills")
    for field in ("skills", "constraints", "locality"):
        yield from limits.iter_skill_faults(field, getattr(command, field))
    for index, skill in enumerate(command.skills):
        if not significant_words(skill):
            detail = f"the skill {skill[:40]!a} says nothing: name a subject"
            yield Refusal("invalid_field", detail, path=f"skills[{index}]")
    if not (isfinite(command.cost) and 0 <= command.cost <= limits.MAX_PRICE):
        detail = f"cost is {command.cost}; it must be from 0 to {limits.MAX_PRICE:g}"
        yield Refusal("invalid_field", detail, path="cost")
    yield limits.check_range("latency_ms", command.latency_ms, 0, limits.WAIT_RANGE_MS[1])
    yield limits.check_range("capacity", command.capacity, 0, limits.MAX_OPEN_REQUESTS)
    yield limits.check_text("reach", command.reach, limits.MAX_REASON)
