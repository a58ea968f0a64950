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
from dragoman.engine.reads.handoffs import taken_handoff
from dragoman.engine.reads.intents import find_intent_of
from dragoman.protocols import ccos

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dragoman.agents.request import Work, Write
    from dragoman.engine.runner import Assignment, Runner

SPOKEN = "ccos"
PREFIX = b"{"
"""Start of a line that is a message of a program: an object on one line."""
_SECONDS = 30.0
"""Timeout of a URL; an agent that needs longer answers 202 and submits its result later."""


def is_asked_so(settings: AgentSettings) -> bool:
    """Check whether an agent is called in CCOS."""
    return SPOKEN in settings.speaks


def prompted(of: "Assignment") -> bytes:
    """Input of every other agent: the text of its prompt."""
    return of.prompt.encode()


def written(store: Store, meta: Callable[["Assignment"], dict[str, Any]]) -> "Write":
    """Writer of the TaskRequest of an assignment; `make_meta` adds what its agent needs."""

    def write(of: "Assignment") -> bytes:
        request = _request(store, of)
        told = meta(of)
        return ccos.as_json(replace(request, meta=(request.meta or {}) | told) if told else request)

    return write


def _request(store: Store, of: "Assignment") -> ccos.TaskRequest:
    """Open request of the intent; for a task without an intent, an equivalent one."""
    view = find_task(store, of.task)
    if isinstance(view, Refusal):
        raise FileNotFoundError(0, view.detail)
    intent, handoff = find_intent_of(store, view.task), taken_handoff(store, view.task, of.agent)
    if intent is not None:
        request = ccos.request_of(intent, view.task, handoff)
        if request is not None and request.agent_id == of.agent:
            return request
    return ccos.request_for_task(view.task, of.agent, of.session, handoff)


def url_runner(name: str, settings: AgentSettings, write: "Write", slow: "Executor") -> "Runner":
    """Runner that posts requests to the agent's URL."""
    from dragoman.agents.request import UrlRunner
    from dragoman.system.fetch import Endpoint

    endpoint = Endpoint(settings.url, f"agents.{name}.url", settings.allow_hosts, seconds=_SECONDS)
    return UrlRunner(write, partial(endpoint.exchange, most=ccos.MOST_RESULT), slow)


def function_runner(name: str, settings: AgentSettings, write: "Write") -> "Runner":
    """Runner that calls the agent's function."""
    from dragoman.agents.request import FunctionRunner

    return FunctionRunner(write, find_function(name, settings.function))


def find_function(name: str, function: str) -> "Work":
    """Import the function of an agent; SettingsError if there is none of that name."""
    module, _, attribute = function.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(
            f"agents.{name}.function {function!a} cannot be found: {error}; write MODULE:NAME"
        ) from None
    return found
