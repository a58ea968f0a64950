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
    """Whose tasks an agent of the settings takes; "" stands for those of anyone."""
    return ("",) * agent.takes_any + (name, *agent.capabilities)


def open_spawner(settings: Settings, hub: Hub, interpreter: Interpreter) -> Spawner:
    """The duty that answers in the hub's own name as spawner."""
    terms = spawner_terms(settings)
    # The letter is from whom the request was to; that it was the hub who wrote it is in its role.
    actor = Actor("system", terms.name, "spawner")
    return Spawner(hub, terms, partial(_answer, interpreter, actor))


def spawner_terms(settings: Settings) -> Terms:
    """What the settings say about requests for workers."""
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
    # Two hubs on one store may both see to it: the key makes one letter of their answers.
    told = interpreter.call("mail.send", row, actor, key=f"spawn.{request.id}")
    if isinstance(told, Turned):
        raise Refused(Refusal(told.code, told.detail))


def _ack(request: Mail, verdict: Verdict) -> compose.Rendered:
    status = "spawned" if verdict.session else "failed"
    if not request.bead:  # a request for nothing has no issue that the form could name
        return compose.Rendered(MessageType.SPAWN_ACK, f"Status: {status}\n")
    return compose.render(compose.spawn_ack(request.bead, status=status, session=verdict.session))
