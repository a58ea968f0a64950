"""What is asked for about agents, people and their tokens."""

from dragoman.core.commands.base import Command
from dragoman.core.events import Role

PAUSED_BY_HAND = "paused by hand"
"""Why an agent is paused, where nobody says more."""


class RegisterAgent(Command, frozen=True, tag="agent.register"):
    """Make a name known, with its role and the dialects that it speaks."""

    name: str
    role: Role = "agent"
    speaks: tuple[str, ...] = ()
    plays: str | None = None
    """The part that it plays in traces; empty: its name, where that is one; None: as before."""


class KeyAgent(Command, frozen=True, tag="agent.key"):
    """Make known with which key a known agent signs; an empty one takes it away."""

    name: str
    key: str
    """The public half of an Ed25519 key, 32 bytes in base64url."""
    overlap_ms: int = 0
    """How long the key that it replaces stays good; 0: it ends at once."""


class IssueToken(Command, frozen=True, tag="token.issue"):
    """Let whoever has a token speak for a known agent; the token itself stays with its maker."""

    name: str
    id: str
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    expires_at: int


class RevokeToken(Command, frozen=True, tag="token.revoke"):
    """End a token of an agent; an empty id ends all that were given out so far."""

    name: str
    id: str = ""


class PauseAgent(Command, frozen=True, tag="agent.pause"):
    """Start nothing for a known agent; what it works on goes on."""

    name: str
    reason: str = PAUSED_BY_HAND
    until: int | None = None
    """When it goes on by itself; None: when somebody says so."""


class ResumeAgent(Command, frozen=True, tag="agent.resume"):
    """Let an agent be started again; nothing happens to one that is not paused."""

    name: str


class RejectMessage(Command, frozen=True, tag="message.reject"):
    """Refuse a message that is no command, so that it is recorded like every other refusal."""

    code: str
    detail: str
    target: str = ""
    kind: str = ""
    """What the sender calls its message."""

    @property
    def about(self) -> str:
        """The task that the message names, known or not."""
        return self.target
