"""Who answers requests for workers: the spawner, in the words of Agent Mail."""

from collections import defaultdict
from functools import partial

from dragoman.config import AgentSettings, Settings
from dragoman.config.store_url import is_postgres
from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.states.letter import Mail
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Turned
from dragoman.protocols.agentmail import MessageType, compose
from dragoman.services.spawner import Spawner, Terms, Verdict


def queues_of(name: str, agent: AgentSettings) -> tuple[str, ...]:
    """Queues of an agent of the settings; "" stands for tasks of anyone."""
    return ("",) * agent.takes_any + (name, *agent.capabilities)


def open_spawner(settings: Settings, hub: Hub, interpreter: Interpreter) -> Spawner:
    """Open the spawner, which answers in the hub's own name."""
    terms = spawner_terms(settings)
    # The sender is the addressee of the request; the role shows that the hub wrote the letter.
    actor = Actor("system", terms.name, "spawner")
    return Spawner(hub, terms, partial(_answer, interpreter, actor))


def spawner_terms(settings: Settings) -> Terms:
    """Policy for requests for workers, from the settings."""
    chosen = settings.agentmail
    takers = defaultdict[str, tuple[str, ...]](tuple)
    for name, one in settings.agents.items():
        for queue in queues_of(name, one):
            takers[queue] += (name,)
    is_shared = is_postgres(settings.store.url)
    kind, within_ms = MessageType.SPAWN_REQUEST, chosen.spawn_within_ms
    return Terms(chosen.spawner, kind, within_ms, takers, is_shared)


def _answer(interpreter: Interpreter, actor: Actor, request: Mail, verdict: Verdict) -> None:
    said = _ack(request, verdict)
    row = {
        "to": [request.sender],
        "subject": said.subject,
        "body_md": f"{said.body_md}\n{verdict.reason}".rstrip() + "\n",
        "reply_to": request.id,
    }
    # Two hubs on one store may both answer: the key makes one letter of it.
    told = interpreter.call("mail.send", row, actor, key=f"spawn.{request.id}")
    if isinstance(told, Turned):
        raise Refused(Refusal(told.code, told.detail))


def _ack(request: Mail, verdict: Verdict) -> compose.Rendered:
    status = "spawned" if verdict.session else "failed"
    if not request.bead:  # a request without a task has no issue for the form
        return compose.Rendered(MessageType.SPAWN_ACK, f"Status: {status}\n")
    return compose.render(compose.spawn_ack(request.bead, status=status, session=verdict.session))
