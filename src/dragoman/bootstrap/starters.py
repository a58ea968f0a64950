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

from dragoman.bootstrap.pulses import record_output_lines
from dragoman.bootstrap.requests import (
    MESSAGE_PREFIX,
    ccos_function_runner,
    ccos_url_runner,
    is_ccos_agent,
    prompt_input,
    request_writer,
)
from dragoman.bootstrap.spawning import agent_queues, spawn_policy
from dragoman.bootstrap.usable import check_agent_settings
from dragoman.config import AgentSettings, environment
from dragoman.core.actors import HUB_ACTOR, Actor
from dragoman.core.commands import WarnTask
from dragoman.core.errors import Refused
from dragoman.engine.interpreter import Router
from dragoman.engine.plan import Rejected
from dragoman.engine.reads.handoffs import handoff_held_by
from dragoman.engine.reads.intents import find_intent_of_task
from dragoman.protocols import aof
from dragoman.protocols.ccos import MAX_RESULT_BYTES
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.system.beneath import SafeDisk
from dragoman.system.ids import new_id
from dragoman.text.safe_text import safe_text
from dragoman.text.strict_json import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from dragoman.core.states.handoff import Handoff
    from dragoman.core.states.intent import Intent
    from dragoman.core.states.task import Task
    from dragoman.engine.identity import Authenticator
    from dragoman.engine.ports import Store
    from dragoman.engine.runner import Assignment, Runner
    from dragoman.services.dispatcher import Dispatcher
    from dragoman.system.run_marks import PidFiles

_WEEK_MS = 7 * 86_400_000
_LOCATION_DIGITS = 8
"""Digits of a URL's digest that identify it, without revealing its content."""
_log = logging.getLogger("dragoman.dispatch")


def open_dispatcher(directory: DataDirectory, identity: "Authenticator", url: str) -> "Dispatcher":
    """Open the dispatcher of a hub that listens at this URL (empty: nowhere).

    It is notified of commits by the hub's hints; `run` it in the loop of the hub.
    """
    from dragoman.agents.prompt import build_prompt, build_remote_prompt
    from dragoman.services.attempt import RunPolicy
    from dragoman.services.budgets import Budget
    from dragoman.services.desk import AgentSpec
    from dragoman.services.dispatcher import Dispatcher, DispatcherPorts, DispatchPolicy
    from dragoman.services.spawner import spawn_requested_at
    from dragoman.system.hub_name import load_or_create_hub_id
    from dragoman.system.run_marks import PidFiles
    from dragoman.system.usage_file import UsageFile

    hub, settings, pids = directory.hub, directory.settings, PidFiles(directory.path)
    # Slow work, like a checkout or a remote URL, must not block readers of the store.
    blocking_pool = ThreadPoolExecutor(settings.dispatch.concurrency, thread_name_prefix="starts")
    cancelled = Event()
    context = _RunnerContext(identity, url, pids, blocking_pool, cancelled.is_set)
    agents = [
        AgentSpec(
            name=name,
            runner=_build_runner(directory, name, context),
            queues=agent_queues(name, one),
            build_prompt=partial(
                _build_prompt, hub.store, build_remote_prompt if one.url else build_prompt
            ),
            dialects=one.speaks,
            must_report=is_ccos_agent(one),
            location=sha256(one.url.encode()).hexdigest()[:_LOCATION_DIGITS] if one.url else "",
            concurrency=one.concurrency,
            attempt_ms=one.attempt_ms,
            budget=Budget(
                one.attempts_per_day, one.minutes_per_day, one.output_per_day, one.cost_per_day
            ),
        )
        for name, one in settings.agents.items()
    ]
    policy = DispatchPolicy(
        hub_name=load_or_create_hub_id(directory.path, new_id),
        concurrency=settings.dispatch.concurrency,
        ttl_ms=settings.leases.ttl_ms,
        poll_ms=settings.dispatch.poll_ms,
        grace_ms=settings.hub.grace_ms,
        run_policy=RunPolicy(
            settings.retry,
            settings.dispatch.stop_ms / 1_000,
            settings.hub.on_stop,
            settings.dispatch.leave_ms / 1_000,
            settings.hub.keep_ms,
        ),
    )
    ports = DispatcherPorts(
        submit_message=partial(_submit_message, directory.router),
        stop_orphans=pids.kill_leftovers,
        forget_session=pids.remove,
        usage=UsageFile(directory.path),
        new_id=new_id,
        warn=lambda text: _log.warning("%s", safe_text(text, one_line=True)),
        spawn_requested_at=partial(spawn_requested_at, hub.store, spawn_policy(settings)),
        cancel_starts=cancelled.set,
    )
    dispatcher = Dispatcher(hub, agents, policy, ports)
    directory.hints.subscribe(dispatcher.hint)
    return dispatcher


class _RunnerContext(Struct, frozen=True):
    """Values shared by all runners."""

    identity: "Authenticator"
    url: str
    pids: "PidFiles"
    blocking_pool: Executor
    is_cancelled: "Callable[[], bool]"
    """True if starts are cancelled because the hub stops."""


def _build_prompt(
    store: "Store",
    write: "Callable[[Task, str, Intent | None, Handoff | None], str]",
    task: "Task",
    agent: str,
) -> str:
    """Build the prompt of a task, with its intent and the handoff by which the agent has it."""
    return write(task, agent, find_intent_of_task(store, task), handoff_held_by(store, task, agent))


def _build_runner(directory: DataDirectory, name: str, context: _RunnerContext) -> "Runner":
    """Build the runner of an agent."""
    settings = directory.settings.agents[name]

    def make_token(of: "Assignment") -> str:
        # The token dies with its attempt. Its own expiry must come later: an agent that is stopped
        # for its time may still report how far it has come.
        ttl_ms = settings.attempt_ms + _WEEK_MS
        return context.identity.issue_attempt_token(of.agent, of.task, of.fence, ttl_ms)

    check_agent_settings(name, settings)
    in_ccos = is_ccos_agent(settings)
    if in_ccos and not settings.command:
        write = request_writer(
            directory.hub.store, partial(_callback_meta, context.url, make_token)
        )
        if settings.url:
            return ccos_url_runner(name, settings, write, context.blocking_pool)
        return ccos_function_runner(name, settings, write)
    if settings.url:
        from dragoman.agents.remote import HttpRunner
        from dragoman.system.fetch import SafeHttpClient

        endpoint = SafeHttpClient(settings.url, f"agents.{name}.url", settings.allow_hosts)
        return HttpRunner(endpoint.post, make_token, context.url, context.blocking_pool)
    from dragoman.agents.output import MessageFormat
    from dragoman.agents.program import ProgramPorts, ProgramRunner
    from dragoman.files.tasks.workplace import WorkingFolders
    from dragoman.system.process import Process

    workplace = WorkingFolders(directory.path, lambda: SafeDisk(directory.path))
    write_input = request_writer(directory.hub.store, lambda _: {}) if in_ccos else prompt_input
    tools = ProgramPorts(
        start=Process.start,
        open_folder=lambda of: workplace.open(of.aof_id, of.attempt, write_input(of)),
        worktree=partial(_open_worktree, directory, settings, context.is_cancelled)
        if settings.repository
        else None,
        blocking_pool=context.blocking_pool,
        pids=context.pids,
        token=make_token,
        url=context.url,
        certificate=_certificate(directory),
        environ=environment(),
        now=directory.hub.clock.now,
        redactor=directory.hub.redaction.redactor,
        messages=MessageFormat(
            (MESSAGE_PREFIX,), MAX_RESULT_BYTES, directory.settings.ccos.payload_bytes
        )
        if in_ccos
        else MessageFormat((aof.PREFIX.encode(),), MAX_BYTES, MAX_BYTES),
        record_lines=record_output_lines(directory.hub),
    )
    return ProgramRunner(name, settings, tools)


def _callback_meta(
    url: str, token: "Callable[[Assignment], str]", assignment: "Assignment"
) -> dict[str, Any]:
    """Address and token with which a remote agent submits its result; the rest of `meta` comes from
    the requester.
    """
    address = {"url": url, "token": token(assignment), "ttl_ms": assignment.ttl_ms} if url else {}
    return {"hub": {"session": assignment.session, **address}}


def _certificate(directory: DataDirectory) -> str:
    """Certificate of the hub for started agents, whatever name it is made out to."""
    path = directory.settings.http.tls_cert
    return f"{Path(path).absolute()}" if path else ""


def _open_worktree(
    directory: DataDirectory,
    settings: AgentSettings,
    is_cancelled: "Callable[[], bool]",
    assignment: "Assignment",
) -> Path:
    """Open the task's worktree, including the commit of an earlier attempt."""
    from dragoman.agents.program import INHERITED_VARIABLES
    from dragoman.system.worktree import Branch, fast_forward, find_commit, open_worktree

    data, resume_commit = directory.path, assignment.resume_commit
    variables = {key: environment()[key] for key in INHERITED_VARIABLES if key in environment()}
    repository = data / settings.repository
    commit = find_commit(repository, resume_commit, variables)
    hub = directory.hub.store.ledger_id()
    branch = Branch(f"dragoman/{assignment.aof_id}", commit or settings.base, hub)
    at = data.absolute() / "worktrees" / assignment.aof_id
    folder = open_worktree(repository, at, branch, variables, is_cancelled)
    if commit and not fast_forward(folder, commit, variables):
        _warn_task(
            directory, assignment, f"the worktree has diverged from the checkpoint {resume_commit}"
        )
    elif resume_commit and not commit:
        _warn_task(
            directory,
            assignment,
            f"the repository has no commit {resume_commit}: the worktree does not include it",
        )
    return folder


def _warn_task(directory: DataDirectory, assignment: "Assignment", detail: str) -> None:
    with suppress(Refused):  # a warning that cannot be recorded does not prevent the start
        directory.hub.submit(HUB_ACTOR, WarnTask(assignment.task, "checkpoint", detail))


async def _submit_message(router: Router, actor: Actor, message: bytes) -> str:
    """Submit a message that a started agent has printed; a note for its log."""
    answer = await router.send_async(message, speaker=actor)
    if isinstance(answer, Rejected):
        return f"refused, {answer.code}: {answer.detail}"
    return "" if answer else "this is no message of a known dialect"
