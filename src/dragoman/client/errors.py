"""Errors between an agent and its hub, besides the hub's own refusals.

DragomanError (core)
- Refused (core): the hub understood and refuses; `code` and `detail` are its words
  - LeaseLost: the task is not the agent's any more, and its work on it must end
  - Unauthenticated: the hub does not accept the token of this program
- QuestionClosed: a question will get no answer any more
- HubUnreachable: no hub answers, or it keeps putting the request off, for longer than the patience
- SettingsError (core): what should lead to the hub does not: an address, token, key or variable
- BadAnswer: the server is no hub, or one that this client does not understand
"""

from dragoman.core.errors import DragomanError, Refusal, Refused


class LeaseLost(Refused):
    """The task is not this agent's any more: stop working on it; the hub refuses all further
    writes."""

    code = "lease_lost"

    def __init__(self, detail: str) -> None:
        super().__init__(Refusal("lease_lost", detail))


class Unauthenticated(Refused):
    """The hub does not accept the token of this program: it is unknown, expired or revoked, or its
    bearer may not connect."""


class QuestionClosed(DragomanError):
    """No answer will come: the question was withdrawn, or its task has gone on without one."""

    code = "question_closed"


class HubUnreachable(DragomanError):
    """No hub answers."""

    code = "hub_unreachable"


class BadAnswer(DragomanError):
    """The server is no hub, or one that this client does not understand."""

    code = "bad_answer"
