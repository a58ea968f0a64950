"""Who starts the agents of the settings: their runners, worktrees, tokens and budgets."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.config import AgentSettings, environment
from dragoman.core.actors import Actor
from dragoman.core.errors import SettingsError
from dragoman.engine.interpreter import Interpreter, Turned
from dragoman.protocols import aof
from dragoman.surfaces.cli.place import Place
from dragoman.system.beneath import Beneath
from dragoman.system.ids import new_id
from dragoman.text.strict_json import MOST_BYTES

if TYPE_CHECKING:
    from dragoman.engine.identity import Identity
    from dragoman.engine.runner import Assignment, Runner
    from dragoman.services.dispatcher import Dispatcher
    from dragoman.system.run_marks import RunMarks

_WEEK_MS = 7 * 86_400_000


def open_dispatcher(place: Place, identity: "Identity", url: str) -> "Dispatcher":
    """Who starts the agents of the settings, for a hub that listens at this URL (empty: nowhere).

    It hears of commits by `place.hints`; `run` it in the loop of the hub.
    """
    from dragoman.agents.prompt import prompt
    from dragoman.services.attempt import Terms
    from dragoman.services.budgets import Budget
    from dragoman.services.dispatcher import Agent, Dispatcher, Outside, Policy
    from dragoman.system.hub_name import hub_name
    from dragoman.system.run_marks import RunMarks
    from dragoman.system.usage_file import UsageFile

    hub, settings, marks = place.hub, place.settings, RunMarks(place.data)
    agents = [
        Agent(
            name=name,
            runner=_runner(place, identity, url, name, marks),
            queues=("",) * one.takes_any + (name, *one.capabilities),
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
        terms=Terms(settings.retry, settings.dispatch.stop_ms / 1_000, settings.hub.on_stop),
    )
    outside = Outside(
        speak=partial(_speak, place.interpreter),
        prompt=prompt,
        sweep=marks.sweep,
        usage=UsageFile(place.data),
        new_id=new_id,
    )
    dispatcher = Dispatcher(hub, agents, policy, outside)
    place.hints.listen(dispatcher.hint)
    return dispatcher


def _runner(place: Place, identity: "Identity", url: str, name: str, marks: "RunMarks") -> "Runner":
    """Who starts the agent of this name."""
    settings = place.settings.agents[name]

    def token(of: "Assignment") -> str:
        # It is dead with its attempt; its own end matters only to one that has no other limit.
        ttl_ms = settings.attempt_ms or _WEEK_MS
        return identity.attempt_token(of.agent, of.task, of.fence, ttl_ms)

    if bool(settings.command) == bool(settings.url):
        raise SettingsError(
            f"agents.{name} needs either a command or a url; an agent that asks for its work "
            "itself needs no section"
        )
    if settings.url:
        from dragoman.agents.remote import RemoteRunner
        from dragoman.system.fetch import Endpoint

        endpoint = Endpoint(settings.url, f"agents.{name}.url", settings.allow_hosts)
        return RemoteRunner(endpoint.post, token, url)
    from dragoman.agents.program import ProgramRunner, Tools
    from dragoman.files.workplace import Workplace
    from dragoman.system.process import Process

    workplace = Workplace(place.data, lambda: Beneath(place.data))
    tools = Tools(
        start=Process.start,
        open_desk=lambda of: workplace.open(of.aof_id, of.attempt, of.prompt.encode()),
        worktree=partial(_worktree, place.data, settings) if settings.repository else None,
        marks=marks,
        token=token,
        url=url,
        environ=environment(),
        now=place.hub.clock.now,
        redact=lambda text: text,
        prefixes=(aof.PREFIX.encode(),),
        most_message=MOST_BYTES,
    )
    return ProgramRunner(name, settings, tools)


def _worktree(data: Path, settings: AgentSettings, of: "Assignment") -> Path:
    from dragoman.agents.program import PASSED_ON
    from dragoman.system.worktree import open_worktree

    at, branch = data.absolute() / "worktrees" / of.aof_id, f"dragoman/{of.aof_id}"
    variables = {key: environment()[key] for key in PASSED_ON if key in environment()}
    return open_worktree(data / settings.repository, at, branch, settings.base, variables)


async def _speak(interpreter: Interpreter, actor: Actor, said: bytes) -> str:
    """A message that a started agent has printed; what is noted in its log."""
    answer = await interpreter.send_soon(said, speaker=actor)
    if isinstance(answer, Turned):
        return f"refused, {answer.code}: {answer.detail}"
    return "" if answer else "this is no message of a dialect that is spoken here"
