"""The synchronous dispatcher: each open request goes to a function, here and now (S-CCOS-7)."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.core.actors import Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.facts import StoreFacts
from dragoman.engine.hub import Hub
from dragoman.engine.interpreter import Router
from dragoman.engine.plan import Rejected
from dragoman.engine.ports import ListQuery
from dragoman.engine.reads.intents import list_intents
from dragoman.protocols import ccos

AgentFunction = Callable[[ccos.TaskRequest], ccos.TaskResult]
"""An agent: takes a request, returns its result."""


class CcosOperations:
    """Calls CCOS operations on a hub, and dispatches its requests to functions."""

    def __init__(self, hub: Hub, choices: ccos.Choices) -> None:
        facts = StoreFacts(hub.store, _has_no_file, now=hub.clock.now)
        self._hub = hub
        self._router = Router(hub, (ccos.dialect(choices),), facts)

    def call(self, operation: str, arguments: Mapping[str, Any], actor: Actor) -> Any:
        """Call an operation; a refusal is raised as Refused."""
        answer = self._router.call(operation, arguments, actor)
        if isinstance(answer, Rejected):
            raise Refused(Refusal(answer.code, answer.detail, path=answer.path))
        return answer.reply

    def dispatch(self, workers: Mapping[str, AgentFunction]) -> int:
        """Dispatch every open request of these agents; their number."""
        requests = [
            request
            for agent in workers
            for placed in list_intents(self._hub.store, ListQuery(f"requests:{agent}", limit=1_000))
            if (request := self._find_request(placed.intent.id)) is not None
        ]
        for request in requests:
            result = workers[request.agent_id](request)
            arguments = msgspec.to_builtins(result)
            self.call("ccos.result", arguments, Actor("agent", request.agent_id, "testing"))
        return len(requests)

    def _find_request(self, intent: str) -> ccos.TaskRequest | None:
        shown = self.call("ccos.intent", {"intent_id": intent}, Actor("observer", "testing"))
        request = shown.get("request")
        return None if request is None else msgspec.convert(request, ccos.TaskRequest)


def _has_no_file(task: str, ref: str) -> bool:
    """Return False: without a data directory no task has files."""
    del task, ref
    return False
