"""What happened to agents, people and their tokens, and what was refused to them."""

from dragoman.core.events.base import Event, Role


class CommandRefused(Event, frozen=True):
    """A command was refused; recorded with the actor, never with the target."""

    command: str
    target: str
    code: str
    detail: str
    kind: str = ""
    """Type of the message in its sender's words, where it never became a command."""
    words: str = ""
    """Digest of such a message: another text is another refusal, even under the same sentence."""


class MessageReceived(Event, frozen=True):
    """A message was understood and changed nothing; recorded with the actor, not with a task."""

    dialect: str
    kind: str
    target: str = ""


class AgentRegistered(Event, frozen=True):
    """An agent or a person is known by this name, in this role, and speaks these dialects."""

    name: str
    role: Role
    speaks: tuple[str, ...] = ()
    plays: str = ""
    """Its SAOP role in traces, where that is not its name; empty: none."""


class AgentKeySet(Event, frozen=True):
    """The agent signs with this public key; empty: with none from now on."""

    key: str
    """Ed25519, 32 bytes in base64url."""
    former_until: int | None = None
    """End of the previous key's validity; None: it has ended."""


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
    """Nothing more is started for the agent, until a time if there is one, or until it resumes."""

    reason: str
    until: int | None = None


class AgentResumed(Event, frozen=True):
    """The agent is started again."""
