"""What is asked for about agents, people and their tokens."""

from dragoman.core.commands.base import Command
from dragoman.core.events import Role

DEFAULT_PAUSE_REASON = "paused by hand"
"""Reason of a pause where none is given."""


class RegisterAgent(Command, frozen=True, tag="agent.register"):
    """Make a name known, with its role and the dialects that it speaks."""

    name: str
    role: Role = "agent"
    speaks: tuple[str, ...] = ()
    plays: str | None = None
    """Its SAOP role in traces; empty: its name, where that is one; None: unchanged."""


class SetAgentKey(Command, frozen=True, tag="agent.key"):
    """Set the key with which a known agent signs; an empty one removes it."""

    name: str
    key: str
    """Public half of an Ed25519 key, 32 bytes in base64url."""
    overlap_ms: int = 0
    """Time for which the replaced key stays valid; 0: it ends at once."""


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
    """Start nothing more for a known agent; its running work continues."""

    name: str
    reason: str = DEFAULT_PAUSE_REASON
    until: int | None = None
    """When it resumes by itself; None: only on request."""


class ResumeAgent(Command, frozen=True, tag="agent.resume"):
    """Let a paused agent be started again; no-op for one that is not paused."""

    name: str


class RejectMessage(Command, frozen=True, tag="message.reject"):
    """Refuse a message that is no command, so that it is recorded like every other refusal."""

    code: str
    detail: str
    target: str = ""
    kind: str = ""
    """Type of the message, in its sender's words."""

    @property
    def target_task(self) -> str:
        """Task that the message names, known or not."""
        return self.target
