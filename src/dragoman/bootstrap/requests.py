"""Agents that are asked in CCOS: what each is handed, and who hands it over."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from dragoman.config import AgentSettings
from dragoman.core.errors import Refusal, SettingsError
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import handoff_held_by
from dragoman.engine.reads.intents import find_intent_of_task
from dragoman.protocols import ccos

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dragoman.agents.request import AgentFunction, WriteRequest
    from dragoman.engine.runner import Assignment, Runner

CCOS = "ccos"
MESSAGE_PREFIX = b"{"
"""Start of a line that is a message of a program: an object on one line."""
_CALL_SECONDS = 30.0
"""Timeout of a URL; an agent that needs longer answers 202 and submits its result later."""


def is_ccos_agent(settings: AgentSettings) -> bool:
    """Check whether an agent is called in CCOS."""
    return CCOS in settings.speaks


def prompt_input(assignment: "Assignment") -> bytes:
    """Input of every other agent: the text of its prompt."""
    return assignment.prompt.encode()


def request_writer(
    store: Store, make_meta: Callable[["Assignment"], dict[str, Any]]
) -> "WriteRequest":
    """Writer of the TaskRequest of an assignment; `make_meta` adds what its agent needs."""

    def write(assignment: "Assignment") -> bytes:
        request = _find_request(store, assignment)
        extra = make_meta(assignment)
        return ccos.as_json(
            replace(request, meta=(request.meta or {}) | extra) if extra else request
        )

    return write


def _find_request(store: Store, assignment: "Assignment") -> ccos.TaskRequest:
    """Open request of the intent; for a task without an intent, an equivalent one."""
    view = find_task(store, assignment.task)
    if isinstance(view, Refusal):
        raise FileNotFoundError(0, view.detail)
    intent, handoff = (
        find_intent_of_task(store, view.task),
        handoff_held_by(store, view.task, assignment.agent),
    )
    if intent is not None:
        request = ccos.request_of(intent, view.task, handoff)
        if request is not None and request.agent_id == assignment.agent:
            return request
    return ccos.request_for_task(view.task, assignment.agent, assignment.session, handoff)


def ccos_url_runner(
    name: str, settings: AgentSettings, write: "WriteRequest", blocking_pool: "Executor"
) -> "Runner":
    """Runner that posts requests to the agent's URL."""
    from dragoman.agents.request import HttpRequestRunner
    from dragoman.system.fetch import SafeHttpClient

    endpoint = SafeHttpClient(
        settings.url, f"agents.{name}.url", settings.allow_hosts, seconds=_CALL_SECONDS
    )
    return HttpRequestRunner(
        write, partial(endpoint.post_and_read, max_bytes=ccos.MAX_RESULT_BYTES), blocking_pool
    )


def ccos_function_runner(name: str, settings: AgentSettings, write: "WriteRequest") -> "Runner":
    """Runner that calls the agent's function."""
    from dragoman.agents.request import FunctionRunner

    return FunctionRunner(write, load_function(name, settings.function))


def load_function(name: str, function: str) -> "AgentFunction":
    """Import the function of an agent; SettingsError if there is none of that name."""
    module, _, attribute = function.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"agents.{name}.function {function!a} cannot be found: {error}; write MODULE:NAME"
        ) from None
    return found
