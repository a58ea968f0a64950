"""Deciders of credentials: by which tokens and which key an agent is recognized (S-ROLE)."""

from typing import Final

from dragoman.core import missing
from dragoman.core.authority import MAY_MANAGE_CREDENTIALS
from dragoman.core.commands import IssueToken, RevokeToken, SetAgentKey
from dragoman.core.errors import Refusal
from dragoman.core.events import AgentEvent, AgentKeySet, TokenIssued, TokenRevoked
from dragoman.core.ids import agent_stream, check_agent
from dragoman.core.limits import (
    KEY_OVERLAP_RANGE_MS,
    MAX_TOKENS,
    TOKEN_LIFETIME_RANGE_MS,
    check_duration,
)
from dragoman.core.moments import clamp_timestamp, to_rfc3339
from dragoman.core.reading import Decision, Read, Receipt
from dragoman.core.states.agent import AgentRecord, PreviousKey
from dragoman.core.tokens import check_token_digest, check_token_id
from dragoman.text.base64url import decode_base64url

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
    if not 0 < command.expires_at - now <= TOKEN_LIFETIME_RANGE_MS[1]:
        return Refusal(
            "invalid_field",
            f"expires_at: {to_rfc3339(command.expires_at)} is past, or more than 366 days ahead",
        )
    if len(known.valid_tokens(now)) >= MAX_TOKENS:
        return Refusal(
            "invalid_field",
            f"{command.name} has {MAX_TOKENS} valid tokens, which is the limit: "
            "revoke those that are not used",
        )
    return _credential_decision(
        command.name, TokenIssued(command.id, command.digest, command.expires_at)
    )


def decide_revoke_token(command: RevokeToken, read: Read, now: int) -> Decision | Refusal:
    """Revoke one token of an agent, or all so far. An agent may revoke its own."""
    del now
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
        return missing.token(command.name, command.id)
    if token.is_revoked:
        return Decision(_CREDENTIAL_RECEIPT)
    return _credential_decision(command.name, TokenRevoked(command.id))


def decide_set_key(command: SetAgentKey, read: Read, now: int) -> Decision | Refusal:
    """Set or remove the key an agent signs with; the previous one may overlap.

    The same key again ends an overlapping key, or shortens its time; else it is a no-op. An agent
    may remove its own key, as it may revoke its own tokens.
    """
    malformed = _check_key(command.key) if command.key else None
    known = (
        malformed
        or _check_overlap(command)
        or _find_manageable(command.name, read, is_own_enough=not command.key)
    )
    if isinstance(known, Refusal):
        return known
    has_overlap = bool(known.key and command.overlap_ms)
    until = clamp_timestamp(now + command.overlap_ms) if has_overlap else None
    if known.key == command.key and not _ends_sooner(known.valid_previous_key(now), until):
        return Decision(_CREDENTIAL_RECEIPT)
    return _credential_decision(command.name, AgentKeySet(command.key, until))


def _ends_sooner(previous: PreviousKey | None, until: int | None) -> bool:
    """True if an overlapping key would end earlier than it does now; without `until`, at once."""
    return previous is not None and (until is None or until < previous.until)


def _check_overlap(command: SetAgentKey) -> Refusal | None:
    if not command.overlap_ms:
        return None
    if not command.key:
        return Refusal("invalid_field", "overlap_ms: there is no new key to overlap with")
    return check_duration("the overlap of two keys", command.overlap_ms, *KEY_OVERLAP_RANGE_MS)


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
        return missing.agent(name)
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


def _credential_decision(name: str, event: AgentEvent) -> Decision:
    return Decision(_CREDENTIAL_RECEIPT, ((agent_stream(name), event),))
