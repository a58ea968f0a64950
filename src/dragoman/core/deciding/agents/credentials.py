"""Deciders of credentials: by which tokens and which key an agent is recognized (S-ROLE)."""

from typing import Final

from dragoman.core import missing
from dragoman.core.authority import MAY_VOUCH
from dragoman.core.commands import IssueToken, KeyAgent, RevokeToken
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentEvent, AgentKeyed, TokenIssued, TokenRevoked
from dragoman.core.ids import agent_stream, check_agent
from dragoman.core.limits import OVERLAP_MS, TOKEN_MS, TOKENS, check_duration
from dragoman.core.moments import to_rfc3339, within_span
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.agent import AgentRecord, FormerKey
from dragoman.core.tokens import check_digest, check_token_id
from dragoman.text.base64url import from_base64url

_ABOUT_NO_TASK: Final = Receipt("", None)
_KEY_BYTES: Final = 32


def issue(command: IssueToken, read: Read, now: int) -> Decision | Refusal:
    """Register one more token of an agent. The same again is a no-op."""
    malformed = check_token_id(command.id) or check_digest(command.digest)
    known = malformed or _vouched(command.name, read)
    if isinstance(known, Refusal):
        return known
    same = [token for token in known.tokens if token.id == command.id]
    if same and (same[0].digest, same[0].expires_at) == (command.digest, command.expires_at):
        return Decision(_ABOUT_NO_TASK)
    if same:
        return Refusal("already_exists", f"{command.name} has a different token {command.id}")
    # A token of the shortest lifetime may have been under way for a moment.
    if not 0 < command.expires_at - now <= TOKEN_MS[1]:
        return Refusal(
            "invalid_field",
            f"expires_at: {to_rfc3339(command.expires_at)} is past, or more than 366 days ahead",
        )
    if len(known.live_tokens(now)) >= TOKENS:
        return Refusal(
            "invalid_field",
            f"{command.name} has {TOKENS} valid tokens, which is the limit: "
            "revoke those that are not used",
        )
    return _about(command.name, TokenIssued(command.id, command.digest, command.expires_at))


def revoke(command: RevokeToken, read: Read, now: int) -> Decision | Refusal:
    """Revoke one token of an agent, or all so far. An agent may revoke its own."""
    del now
    known = _vouched(command.name, read, is_own_enough=True)
    if isinstance(known, Refusal):
        return known
    if not command.id:
        # Always recorded: tokens of attempts are not on the list, and some may have been issued.
        return _about(command.name, TokenRevoked())
    malformed = check_token_id(command.id)
    if malformed is not None:
        return malformed
    token = next((token for token in known.tokens if token.id == command.id), None)
    if token is None:
        return missing.token(command.name, command.id)
    if token.is_revoked:
        return Decision(_ABOUT_NO_TASK)
    return _about(command.name, TokenRevoked(command.id))


def key(command: KeyAgent, read: Read, now: int) -> Decision | Refusal:
    """Set or remove the key an agent signs with; the previous one may overlap.

    The same key again ends an overlapping key, or shortens its time; else it is a no-op. An agent
    may remove its own key, as it may revoke its own tokens.
    """
    malformed = _check_key(command.key) if command.key else None
    known = (
        malformed
        or _check_overlap(command)
        or _vouched(command.name, read, is_own_enough=not command.key)
    )
    if isinstance(known, Refusal):
        return known
    lasts = bool(known.key and command.overlap_ms)
    until = within_span(now + command.overlap_ms) if lasts else None
    if known.key == command.key and not _ends_sooner(known.overlapping(now), until):
        return Decision(_ABOUT_NO_TASK)
    return _about(command.name, AgentKeyed(command.key, until))


def _ends_sooner(former: FormerKey | None, until: int | None) -> bool:
    """True if an overlapping key would end earlier than it does now; without `until`, at once."""
    return former is not None and (until is None or until < former.until)


def _check_overlap(command: KeyAgent) -> Refusal | None:
    if not command.overlap_ms:
        return None
    if not command.key:
        return Refusal("invalid_field", "overlap_ms: there is no new key to overlap with")
    return check_duration("the overlap of two keys", command.overlap_ms, *OVERLAP_MS)


def _vouched(name: str, read: Read, *, is_own_enough: bool = False) -> AgentRecord | Refusal:
    """Record of an agent whose credentials the caller may manage, or a refusal."""
    malformed = check_agent(name)
    if malformed is not None:
        return malformed
    actor = read.actor
    known = read.agent(name)
    is_own = is_own_enough and actor.role == "agent" and actor.name == name
    if not MAY_VOUCH[actor.role] and not is_own:
        return Refusal("not_authorized", f"{actor.label} may not manage credentials")
    if known is None:
        return missing.agent(name)
    if known.role not in MAY_VOUCH[actor.role] and not is_own:
        return Refusal(
            "not_authorized",
            f"{actor.label} may not manage credentials of {name}, whose role is {known.role}",
        )
    return known


def _check_key(text: str) -> Refusal | None:
    raw = from_base64url(text)
    if raw is not None and len(raw) == _KEY_BYTES:
        return None
    return Refusal("invalid_field", "key is not the public half of an Ed25519 key in base64url")


def _about(name: str, event: AgentEvent) -> Decision:
    return Decision(_ABOUT_NO_TASK, ((agent_stream(name), event),))
