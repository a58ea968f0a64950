"""Who answers requests for workers: the spawner, in the words of Agent Mail."""

from collections import defaultdict
from functools import partial

from dragoman.config import AgentSettings, Settings
from dragoman.config.store_url import is_postgres
from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.states.letter import Mail
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Router
from dragoman.engine.plan import Rejected
from dragoman.protocols.agentmail import MessageType, compose
from dragoman.services.spawner import Spawner, SpawnPolicy, SpawnResult


def agent_queues(name: str, agent: AgentSettings) -> tuple[str, ...]:
    """Queues of an agent of the settings; "" stands for tasks of anyone."""
    return ("",) * agent.takes_any + (name, *agent.capabilities)


def open_spawner(settings: Settings, hub: Hub, router: Router) -> Spawner:
    """Open the spawner, which answers in the hub's own name."""
    policy = spawn_policy(settings)
    # The sender is the addressee of the request; the role shows that the hub wrote the letter.
    actor = Actor("system", policy.spawner, "spawner")
    return Spawner(hub, policy, partial(_post_answer, router, actor))


def spawn_policy(settings: Settings) -> SpawnPolicy:
    """Policy for requests for workers, from the settings."""
    section = settings.agentmail
    agents_by_queue = defaultdict[str, tuple[str, ...]](tuple)
    for name, one in settings.agents.items():
        for queue in agent_queues(name, one):
            agents_by_queue[queue] += (name,)
    is_shared = is_postgres(settings.store.url)
    kind, within_ms = MessageType.SPAWN_REQUEST, section.spawn_within_ms
    return SpawnPolicy(section.spawner, kind, within_ms, agents_by_queue, is_shared)


def _post_answer(router: Router, actor: Actor, request: Mail, result: SpawnResult) -> None:
    ack = _format_ack(request, result)
    row = {
        "to": [request.sender],
        "subject": ack.subject,
        "body_md": f"{ack.body_md}\n{result.reason}".rstrip() + "\n",
        "reply_to": request.id,
    }
    # Two hubs on one store may both answer: the key makes one letter of it.
    answer = router.call("mail.send", row, actor, key=f"spawn.{request.id}")
    if isinstance(answer, Rejected):
        raise Refused(Refusal(answer.code, answer.detail))


def _format_ack(request: Mail, result: SpawnResult) -> compose.Rendered:
    status = "spawned" if result.session else "failed"
    if not request.bead:  # a request without a task has no issue for the form
        return compose.Rendered(MessageType.SPAWN_ACK, f"Status: {status}\n")
    return compose.render(compose.spawn_ack(request.bead, status=status, session=result.session))
