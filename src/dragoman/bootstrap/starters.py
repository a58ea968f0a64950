"""Who starts the agents of the settings: their runners, worktrees, tokens and budgets."""

import logging
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dragoman.bootstrap.pulses import tell_pulses
from dragoman.bootstrap.requests import (
    PREFIX,
    function_runner,
    is_asked_so,
    prompted,
    url_runner,
    written,
)
from dragoman.bootstrap.spawning import queues_of, spawner_terms
from dragoman.bootstrap.usable import check_agent
from dragoman.config import AgentSettings, environment
from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import WarnTask
from dragoman.core.errors import Refused
from dragoman.engine.interpreter import Interpreter
from dragoman.engine.plan import Turned
from dragoman.engine.reads.handoffs import taken_handoff
from dragoman.engine.reads.intents import find_intent_of
from dragoman.protocols import aof
from dragoman.protocols.ccos import MOST_RESULT
from dragoman.surfaces.cli.place import Place
from dragoman.system.beneath import Beneath
from dragoman.system.ids import new_id
from dragoman.text.safe_text import safe_text
from dragoman.text.strict_json import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.states.handoff import Handoff
    from dragoman.core.states.intent import Intent
    from dragoman.core.states.task import Task
    from dragoman.engine.identity import Identity
    from dragoman.engine.ports import Store
    from dragoman.engine.runner import Assignment, Runner
    from dragoman.services.dispatcher import Dispatcher
    from dragoman.system.run_marks import RunMarks

_WEEK_MS = 7 * 86_400_000
_PLACE_SHOWN = 8
"""Digits of a URL's digest that identify it, without revealing its content."""
_log = logging.getLogger("dragoman.dispatch")


def open_dispatcher(place: Place, identity: "Identity", url: str) -> "Dispatcher":
    """Open the dispatcher of a hub that listens at this URL (empty: nowhere).

    It is notified of commits by the hub's hints; `run` it in the loop of the hub.
    """
    from dragoman.agents.prompt import prompt, prompt_elsewhere
    from dragoman.services.attempt import Terms
    from dragoman.services.budgets import Budget
    from dragoman.services.desk import Agent
    from dragoman.services.dispatcher import Dispatcher, Outside, Policy
    from dragoman.services.spawner import asked_at
    from dragoman.system.hub_name import hub_name
    from dragoman.system.run_marks import RunMarks
    from dragoman.system.usage_file import UsageFile

    hub, settings, marks = place.hub, place.settings, RunMarks(place.data)
    # Slow work, like a checkout or a remote URL, must not block readers of the store.
    slow = ThreadPoolExecutor(settings.dispatch.concurrency, thread_name_prefix="starts")
    is_over = Event()
    starting = _Starting(identity, url, marks, slow, is_over.is_set)
    agents = [
        Agent(
            name=name,
            runner=_runner(place, name, starting),
            queues=queues_of(name, one),
            prompt=partial(_told, hub.store, prompt_elsewhere if one.url else prompt),
            speaks=one.speaks,
            must_report=is_asked_so(one),
            elsewhere=sha256(one.url.encode()).hexdigest()[:_PLACE_SHOWN] if one.url else "",
            concurrency=one.concurrency,
            attempt_ms=one.attempt_ms,
            budget=Budget(
                one.attempts_per_day, one.minutes_per_day, one.output_per_day, one.cost_per_day
            ),
        )
        for name, one in settings.agents.items()
    ]
    policy = Policy(
        hub=hub_name(place.data, new_id),
        concurrency=settings.dispatch.concurrency,
        ttl_ms=settings.leases.ttl_ms,
        poll_ms=settings.dispatch.poll_ms,
        grace_ms=settings.hub.grace_ms,
        terms=Terms(
            settings.retry,
            settings.dispatch.stop_ms / 1_000,
            settings.hub.on_stop,
            settings.dispatch.leave_ms / 1_000,
            settings.hub.keep_ms,
        ),
    )
    outside = Outside(
        speak=partial(_speak, place.interpreter),
        sweep=marks.sweep,
        forget=marks.remove,
        usage=UsageFile(place.data),
        new_id=new_id,
        tell=lambda text: _log.warning("%s", safe_text(text, one_line=True)),
        asked_at=partial(asked_at, hub.store, spawner_terms(settings)),
        break_off=is_over.set,
    )
    dispatcher = Dispatcher(hub, agents, policy, outside)
    place.hints.listen(dispatcher.hint)
    return dispatcher


class _Starting(Struct, frozen=True):
    """Values shared by all runners."""

    identity: "Identity"
    url: str
    marks: "RunMarks"
    slow: Executor
    is_over: "Callable[[], bool]"
    """True if starts are cancelled because the hub stops."""


def _told(
    store: "Store",
    write: "Callable[[Task, str, Intent | None, Handoff | None], str]",
    task: "Task",
    agent: str,
) -> str:
    """Build the prompt of a task, with its intent and the handoff by which the agent has it."""
    return write(task, agent, find_intent_of(store, task), taken_handoff(store, task, agent))


def _runner(place: Place, name: str, starting: _Starting) -> "Runner":
    """Build the runner of an agent."""
    settings = place.settings.agents[name]

    def token(of: "Assignment") -> str:
        # The token dies with its attempt. Its own expiry must come later: an agent that is stopped
        # for its time may still report how far it has come.
        ttl_ms = settings.attempt_ms + _WEEK_MS
        return starting.identity.attempt_token(of.agent, of.task, of.fence, ttl_ms)

    check_agent(name, settings)
    in_ccos = is_asked_so(settings)
    if in_ccos and not settings.command:
        write = written(place.hub.store, partial(_hub_of, starting.url, token))
        if settings.url:
            return url_runner(name, settings, write, starting.slow)
        return function_runner(name, settings, write)
    if settings.url:
        from dragoman.agents.remote import RemoteRunner
        from dragoman.system.fetch import Endpoint

        endpoint = Endpoint(settings.url, f"agents.{name}.url", settings.allow_hosts)
        return RemoteRunner(endpoint.post, token, starting.url, starting.slow)
    from dragoman.agents.output import Messages
    from dragoman.agents.program import ProgramRunner, Tools
    from dragoman.files.tasks.workplace import Workplace
    from dragoman.system.process import Process

    workplace = Workplace(place.data, lambda: Beneath(place.data))
    words = written(place.hub.store, lambda _: {}) if in_ccos else prompted
    tools = Tools(
        start=Process.start,
        open_desk=lambda of: workplace.open(of.aof_id, of.attempt, words(of)),
        worktree=partial(_worktree, place, settings, starting.is_over)
        if settings.repository
        else None,
        slow=starting.slow,
        marks=starting.marks,
        token=token,
        url=starting.url,
        certificate=_certificate(place),
        environ=environment(),
        now=place.hub.clock.now,
        redactor=place.hub.redaction.redactor,
        messages=Messages((PREFIX,), MOST_RESULT, place.settings.ccos.payload_bytes)
        if in_ccos
        else Messages((aof.PREFIX.encode(),), MOST_BYTES, MOST_BYTES),
        tell=tell_pulses(place.hub),
    )
    return ProgramRunner(name, settings, tools)


def _hub_of(url: str, token: "Callable[[Assignment], str]", of: "Assignment") -> dict[str, Any]:
    """Address and token with which a remote agent submits its result; the rest of `meta` comes from
    the requester.
    """
    door = {"url": url, "token": token(of), "ttl_ms": of.ttl_ms} if url else {}
    return {"hub": {"session": of.session, **door}}


def _certificate(place: Place) -> str:
    """Certificate of the hub for started agents, whatever name it is made out to."""
    given = place.settings.http.tls_cert
    return f"{Path(given).absolute()}" if given else ""


def _worktree(
    place: Place, settings: AgentSettings, is_over: "Callable[[], bool]", of: "Assignment"
) -> Path:
    """Open the task's worktree, including the commit of an earlier attempt."""
    from dragoman.agents.program import PASSED_ON
    from dragoman.system.worktree import Branch, find_commit, go_on_from, open_worktree

    data, wanted = place.data, of.resume_from
    variables = {key: environment()[key] for key in PASSED_ON if key in environment()}
    repository = data / settings.repository
    commit = find_commit(repository, wanted, variables)
    hub = place.hub.store.ledger_id()
    branch = Branch(f"dragoman/{of.aof_id}", commit or settings.base, hub)
    at = data.absolute() / "worktrees" / of.aof_id
    folder = open_worktree(repository, at, branch, variables, is_over)
    if commit and not go_on_from(folder, commit, variables):
        _warn(place, of, f"the worktree has diverged from the checkpoint {wanted}")
    elif wanted and not commit:
        _warn(place, of, f"the repository has no commit {wanted}: the worktree does not include it")
    return folder


def _warn(place: Place, of: "Assignment", detail: str) -> None:
    with suppress(Refused):  # a warning that cannot be recorded does not prevent the start
        place.hub.do(SYSTEM, WarnTask(of.task, "checkpoint", detail))


async def _speak(interpreter: Interpreter, actor: Actor, said: bytes) -> str:
    """Submit a message that a started agent has printed; a note for its log."""
    answer = await interpreter.send_soon(said, speaker=actor)
    if isinstance(answer, Turned):
        return f"refused, {answer.code}: {answer.detail}"
    return "" if answer else "this is no message of a known dialect"
