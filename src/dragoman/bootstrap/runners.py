"""Runners of the configured agents, and the dispatcher: worktrees, tokens, budgets, prompts."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.preflight import check_agent_settings, is_ccos_agent, load_function
from dragoman.bootstrap.separation import (
    Separation,
    list_secret_files,
    open_separation,
    restrict_directory,
)
from dragoman.bootstrap.services import agent_queues
from dragoman.config import AgentSettings, environment
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import WarnTask
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.queries.briefing import find_briefing
from dragoman.engine.queries.handoffs import handoff_held_by
from dragoman.engine.queries.intents import find_intent_of_task
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Rejected
from dragoman.engine.router import Router
from dragoman.protocols import aof, ccos, saop
from dragoman.protocols.ccos import MAX_RESULT_BYTES
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.system.clock import new_id
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.safe_text import safe_text
from dragoman.text.strict_json import MAX_BYTES

if TYPE_CHECKING:
    from dragoman.agents.http_runner import WriteRequest
    from dragoman.agents.program_output import Pulse
    from dragoman.bootstrap.settings_reloader import BuildAgents
    from dragoman.core.task_state import Task
    from dragoman.engine.auth import Authenticator
    from dragoman.engine.ports import Assignment, Runner
    from dragoman.services.dispatch.agent_slots import AgentSpec
    from dragoman.services.dispatch.dispatcher import Dispatcher
    from dragoman.system.process import PidFiles

# --- dispatcher -------------------------------------------------------------------------------

_WEEK_MS = 7 * 86_400_000

_log = logging.getLogger("dragoman.dispatch")


def open_dispatcher(
    directory: DataDirectory, identity: "Authenticator", url: str, config: Path | None = None
) -> "tuple[Dispatcher, BuildAgents]":
    """Open the dispatcher of a hub that listens at this URL (empty: nowhere); `config`: the file of
    its settings, if that is another than `dragoman.toml`. With it comes what builds its agents.

    It is notified of commits by the hub's hints; `run` it in the loop of the hub.
    """
    from dragoman.services.dispatch.agent_run import RunPolicy
    from dragoman.services.dispatch.dispatcher import Dispatcher, DispatcherPorts, DispatchPolicy
    from dragoman.system.process import PidFiles
    from dragoman.system.state_files import StateFile, load_or_create_hub_id

    hub, settings, pids = directory.hub, directory.settings, PidFiles(directory.path)
    # Slow work, like a checkout or a remote URL, must not block readers of the store.
    blocking_pool = ThreadPoolExecutor(settings.dispatch.concurrency, thread_name_prefix="starts")
    cancelled = Event()
    context = _RunnerContext(identity, url, config, pids, blocking_pool, cancelled.is_set)
    build_agents = partial(_build_agents, directory, context)
    agents = build_agents(settings.agents)
    policy = DispatchPolicy(
        hub_name=load_or_create_hub_id(directory.path, new_id),
        concurrency=settings.dispatch.concurrency,
        ttl_ms=settings.leases.ttl_ms,
        poll_ms=settings.dispatch.poll_ms,
        drain_ms=settings.hub.drain_ms,
        run_policy=RunPolicy(
            settings.retry,
            settings.dispatch.stop_grace_ms / 1_000,
            settings.dispatch.exit_grace_ms / 1_000,
            settings.attempts.pauses_limited,
        ),
    )
    ports = DispatcherPorts(
        submit_message=partial(_submit_message, directory.router),
        stop_orphans=pids.kill_leftovers,
        forget_session=pids.remove,
        usage=StateFile(directory.path / "agent-usage.json"),
        new_id=new_id,
        warn=lambda text: _log.warning("%s", safe_text(text, one_line=True)),
        cancel_starts=cancelled.set,
        on_run_end=partial(directory.hints.notify, ()),
    )
    dispatcher = Dispatcher(hub, agents, policy, ports)
    directory.hints.subscribe(dispatcher.hint)
    return dispatcher, build_agents


def _build_agents(
    directory: DataDirectory, context: "_RunnerContext", agents: Mapping[str, AgentSettings]
) -> "list[AgentSpec]":
    """Build what the dispatcher needs to start these agents."""
    from dragoman.agents.prompt import build_prompt, build_remote_prompt
    from dragoman.services.dispatch.agent_slots import AgentSpec
    from dragoman.services.dispatch.budget_enforcer import Budget

    directory.warnings.extend(restrict_directory(directory.path, agents.values()))
    return [
        AgentSpec(
            name=name,
            runner=_build_runner(directory, name, one, context),
            queues=agent_queues(name, one),
            build_prompt=partial(
                _build_prompt, directory, build_remote_prompt if one.url else build_prompt
            ),
            dialects=one.speaks,
            must_report=is_ccos_agent(one),
            checks=one.checks,
            concurrency=one.concurrency,
            attempt_ms=_attempt_limit(one.attempt_ms, directory.settings.attempts.max_ms),
            budget=Budget(
                one.attempts_per_day, one.minutes_per_day, one.output_per_day, one.cost_per_day
            ),
        )
        for name, one in agents.items()
    ]


def _attempt_limit(*limits_ms: int) -> int:
    """The shortest of several time limits; 0: none holds."""
    return min(filter(None, limits_ms), default=0)


class _RunnerContext(Struct, frozen=True):
    """Values shared by all runners."""

    identity: "Authenticator"
    url: str
    config: Path | None
    """File that the settings come from; None: that of the data directory."""
    pids: "PidFiles"
    blocking_pool: Executor
    is_cancelled: "Callable[[], bool]"
    """True if starts are cancelled because the hub stops."""


def _build_prompt(
    directory: DataDirectory,
    write: Callable[..., str],
    task: "Task",
    agent: str,
) -> str:
    store = directory.hub.store
    return write(
        task,
        agent,
        find_intent_of_task(store, task),
        handoff_held_by(store, task, agent),
        find_briefing(store, task),
        _messages_about(directory, task, agent),
    )


def _messages_about(directory: DataDirectory, task: "Task", agent: str) -> tuple[Any, ...]:
    """Messages about a task that its agent got in its own dialect."""
    from dragoman.services.deliverer import Deliverer

    (deliverer,) = (one for one in directory.services if isinstance(one, Deliverer))
    try:
        return deliverer.messages_about(task, agent)
    except (Refused, OSError):  # they stay in the ledger, and an agent starts without them
        return ()


def _delivered(directory: DataDirectory, assignment: "Assignment") -> tuple[Any, ...]:
    view = find_task(directory.hub.store, assignment.task)
    if isinstance(view, Refusal):
        return ()
    return _messages_about(directory, view.task, assignment.agent)


async def _submit_message(router: Router, actor: Actor, message: bytes) -> str:
    """Submit a message that a started agent has printed; a note for its log."""
    answer = await router.send_async(message, speaker=actor)
    if isinstance(answer, Rejected):
        return f"refused, {answer.code}: {answer.detail}"
    return "" if answer else "this is no message of a known dialect"


# --- runners ----------------------------------------------------------------------------------


def _build_runner(
    directory: DataDirectory, name: str, settings: AgentSettings, context: _RunnerContext
) -> "Runner":
    """Build the runner of an agent."""

    def make_token(of: "Assignment") -> str:
        # The token dies with its attempt. Its own expiry must come later: an agent that is stopped
        # for its time may still report how far it has come.
        ttl_ms = settings.attempt_ms + _WEEK_MS
        return context.identity.issue_attempt_token(of.agent, of.task, of.fence, ttl_ms)

    check_agent_settings(name, settings)
    in_ccos, store = is_ccos_agent(settings), directory.hub.store
    delivered = partial(_delivered, directory)
    call_back_meta = partial(_callback_meta, context.url, make_token)
    call_back = request_writer(store, call_back_meta, delivered)
    if settings.function:
        from dragoman.agents.function_runner import FunctionRunner

        return FunctionRunner(call_back, load_function(name, settings.function))
    if settings.url:
        from dragoman.agents.http_runner import HttpRunner, write_assignment
        from dragoman.system.http_client import SafeHttpClient

        label = f"agents.{name}.url"
        if in_ccos:
            agent = SafeHttpClient(settings.url, label, settings.allow_hosts, seconds=_CALL_SECONDS)
            exchange = partial(agent.post_and_read, max_bytes=MAX_RESULT_BYTES)
            return HttpRunner(call_back, exchange, context.blocking_pool)
        agent = SafeHttpClient(settings.url, label, settings.allow_hosts)
        write = partial(write_assignment, token=make_token, url=context.url, delivered=delivered)
        exchange = partial(agent.post_and_read, max_bytes=0)
        return HttpRunner(write, exchange, context.blocking_pool)
    from dragoman.agents.program_output import MessageFormat
    from dragoman.agents.program_runner import ProgramPorts, ProgramRunner
    from dragoman.files.task_work_folder import WorkingFolders
    from dragoman.system.process import Process

    separation = open_separation(
        name,
        settings,
        directory.path,
        list_secret_files(directory.settings, directory.path, context.config),
        _certificate(directory),
        _git_variables(),
    )
    workplace = WorkingFolders(directory.path, lambda: SafeDisk(directory.path))
    write_input = request_writer(store, lambda _: {}, delivered) if in_ccos else prompt_input
    tools = ProgramPorts(
        start=partial(
            Process.start, user=separation.user, switches_itself=separation.switches_itself
        ),
        open_folder=lambda of: workplace.open(of.aof_id, of.attempt, write_input(of)),
        worktree=partial(_open_worktree, directory, separation, context.is_cancelled)
        if settings.repository
        else None,
        separate=separation.separate,
        variables=separation.variables,
        blocking_pool=context.blocking_pool,
        pids=context.pids,
        token=make_token,
        url=context.url,
        certificate=_certificate(directory),
        environ=environment(),
        now=directory.hub.clock.now,
        redactor=directory.hub.redaction.redactor,
        messages=MessageFormat(
            (MESSAGE_PREFIX,), MAX_RESULT_BYTES, directory.settings.ccos.max_output_bytes
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


def _git_variables() -> dict[str, str]:
    """Variables with which the hub runs git."""
    from dragoman.agents.program_runner import INHERITED_VARIABLES

    return {key: environment()[key] for key in INHERITED_VARIABLES if key in environment()}


def _open_worktree(
    directory: DataDirectory,
    separation: Separation,
    is_cancelled: "Callable[[], bool]",
    assignment: "Assignment",
) -> Path:
    """Open the task's worktree, including the commit of an earlier attempt."""
    from dragoman.files.layout import worktree_path
    from dragoman.system.worktree import Branch, fast_forward, find_commit, open_worktree

    data, resume_commit = directory.path, assignment.resume_commit
    settings, variables = separation.settings, separation.git_variables
    repository = data / settings.repository
    commit = find_commit(repository, resume_commit, variables)
    hub = directory.hub.store.ledger_id()
    branch = Branch(f"dragoman/{assignment.aof_id}", commit or settings.base, hub)
    at = data.absolute() / worktree_path(assignment.aof_id)
    folder = open_worktree(repository, at, branch, variables, is_cancelled)

    def wrap(words: Sequence[str]) -> Sequence[str]:
        return separation.wrap_git(words, assignment, folder)

    if commit and not fast_forward(folder, commit, variables, wrap):
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


# --- output of programs as trace events -------------------------------------------------------

_VIA = "agent-output"


def record_output_lines(
    hub: Hub,
) -> "Callable[[Assignment, Sequence[Pulse]], Awaitable[object]]":
    """Recorder of an attempt's output lines, all or none, in the name of its agent."""

    async def record(assignment: "Assignment", pulses: "Sequence[Pulse]") -> None:
        actor = Actor("agent", assignment.agent, _VIA, assignment.task, assignment.fence)
        events = (saop.SandboxPulse(one.line, one.masked, one.timestamp) for one in pulses)
        commands = (
            saop.pulse_command(new_id(), assignment.session, one, hub.content_key) for one in events
        )
        await hub.submit_async(actor, *commands)

    return record


# --- agents that are called in CCOS -----------------------------------------------------------

MESSAGE_PREFIX = b"{"
"""Start of a line that is a message of a program: an object on one line."""

_CALL_SECONDS = 30.0
"""Timeout of a URL; an agent that needs longer answers 202 and submits its result later."""


def prompt_input(assignment: "Assignment") -> bytes:
    """Input of every other agent: the text of its prompt."""
    return assignment.prompt.encode()


def request_writer(
    store: Store,
    make_meta: Callable[["Assignment"], dict[str, Any]],
    delivered: Callable[["Assignment"], tuple[Any, ...]],
) -> "WriteRequest":
    """Writer of the TaskRequest of an assignment; `make_meta` adds what its agent needs, and
    `delivered` finds the messages about its task, of which the request itself is none.
    """

    def write(assignment: "Assignment") -> bytes:
        request = _find_request(store, assignment)
        messages = [
            one
            for one in delivered(assignment)
            if "goal" not in one or one.get("request_id") != request.request_id
        ]
        extra = make_meta(assignment) | ({"delivered": messages} if messages else {})
        return ccos.as_json(
            replace(request, meta=(request.meta or {}) | extra) if extra else request
        )

    return write


def _find_request(store: Store, assignment: "Assignment") -> ccos.TaskRequest:
    """Open request of the intent; for a task without an intent, an equivalent one."""
    view = find_task(store, assignment.task)
    if isinstance(view, Refusal):
        raise FileNotFoundError(0, view.detail)
    intent, handoff, briefing = (
        find_intent_of_task(store, view.task),
        handoff_held_by(store, view.task, assignment.agent),
        find_briefing(store, view.task),
    )
    if intent is not None:
        request = ccos.request_of(intent, view.task, handoff, briefing)
        if request is not None and request.agent_id == assignment.agent:
            return request
    return ccos.request_for_task(view.task, assignment.agent, assignment.session, handoff, briefing)
