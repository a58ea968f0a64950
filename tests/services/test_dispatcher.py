"""The dispatcher: order, matching, fairness, concurrency, budgets, stop and restart."""

import asyncio
import json
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue

import pytest
from msgspec.structs import replace

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.agent import PauseAgent, RegisterAgent, ResumeAgent
from dragoman.core.attempt import CheckpointTask, ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.attempt_state import TaskClaimed
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import LedgerError, StoreUnavailable
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.engine.auth import Principal
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Assignment, OnMessage, RunExit
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import all_entries, decode_event, stream_entries
from dragoman.engine.queries.numbers import parse_amount
from dragoman.ledger.entry import read_line
from dragoman.services.dispatch.agent_run import RunPolicy
from dragoman.services.dispatch.agent_slots import AgentSpec
from dragoman.services.dispatch.budget_enforcer import (
    Budget,
    BudgetEnforcer,
    Usage,
    add_usage,
    exhaustion_message,
    next_day_start,
    usage_today,
)
from dragoman.services.dispatch.cooldown import Cooldowns, ReleaseEvent
from dragoman.services.dispatch.dispatcher import Dispatcher, DispatcherPorts, DispatchPolicy
from dragoman.services.dispatch.orphan_recovery import ForgetSession, StopOrphans
from dragoman.services.timers import LeaseExpiry
from dragoman.system.clock import SequentialIds
from tests.agents.running_hub import FAST, PERSON, RunningHub, agent_section, run, running_hub
from tests.engine.lab import HUMAN, Lab
from tests.requirements import proves
from tests.traces import Trace


def idle_agent_section(name: str, trace: Trace, **settings: object) -> str:
    """Settings of an agent that reports its start to the trace, and then idles."""
    script = 'exec 3>"$0"; echo up >&3; while :; do sleep 100; done'
    lines = [f"[agents.{name}]", f"command = {json.dumps(['sh', '-c', script, str(trace.path)])}"]
    return "\n".join([*lines, *(f"{k} = {json.dumps(v)}" for k, v in settings.items())]) + "\n"


async def wait_for_starts(trace: Trace, count: int) -> None:
    """Wait until so many agents have started."""
    output = b""
    while output.count(b"up\n") < count:
        output += await asyncio.to_thread(trace.read)


@proves("DISPATCH-ORDER")
def test_highest_priority_task_is_dispatched_first_across_agents(tmp_path: Path) -> None:
    settings = FAST.replace("[dispatch]\n", "[dispatch]\nconcurrency = 1\n")
    settings += agent_section("ada", "report()", takes_unassigned=False)
    settings += agent_section("ben", "report()", capabilities=["backend"])

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            names = [
                hub.make("1", assignee="ada", priority="low"),
                hub.make("2", assignee="backend", priority="high"),
                hub.make("3", priority="normal"),
                hub.make("4", assignee="ada", priority="critical"),
            ]
            async with asyncio.TaskGroup() as group:
                group.create_task(hub.dispatcher.run())
                for name in names:
                    await hub.until_status(name, "review")
                hub.dispatcher.stop()
            claims = [line.stream for line in hub.lines() if line.event == "task.claimed"]
            assert [names.index(claim.removeprefix("task:")) for claim in claims] == [3, 1, 2, 0]
            owners = [hub.task(name).assignee for name in names]
            assert owners == ["ada", "ben", "ben", "ada"]

    run(scenario())


@proves("DISPATCH-ORDER")
def test_reservation_and_retry_work_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    settings = f"[store]\nurl = {json.dumps(postgres_url)}\n[retry]\nbase_ms = 1\n" + FAST
    program = "report() if os.path.exists('tried') else open('tried', 'w') and sys.exit(1)"
    settings += agent_section("ada", program, takes_unassigned=False, capabilities=["backend"])

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            unmatched, reserved = hub.make("strange"), hub.make("wanted", assignee="backend")
            done = await hub.until_status(reserved, "review")
            assert (done.attempts, done.assignee) == (2, "ada")
            assert hub.task(unmatched).status == "ready"

    run(scenario())


@proves("DISPATCH-CONCURRENCY")
def test_concurrency_limits_hold_and_a_freed_slot_is_filled(tmp_path: Path, trace: Trace) -> None:
    settings = FAST.replace("[dispatch]\n", "[dispatch]\nconcurrency = 3\n")
    settings += idle_agent_section("ada", trace, concurrency=2) + idle_agent_section(
        "ben", trace, concurrency=2
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            tasks = [hub.make(str(number)) for number in range(5)]
            await wait_for_starts(trace, 3)
            running = [state.running_tasks for state in hub.dispatcher.agent_states()]
            assert sorted(map(len, running)) == [1, 2]
            held = [task for task in tasks if hub.task(task).status == "in-progress"]
            assert len(held) == 3
            hub.do(MoveTask(held[0], "cancelled"))
            await wait_for_starts(trace, 1)
            held = [task for task in tasks if hub.task(task).status == "in-progress"]
            assert len(held) == 3

    run(scenario())


@proves("DISPATCH-SHARED")
@pytest.mark.parametrize(
    "change", [MoveTask("first", "cancelled"), RegisterAgent("ada", "observer")], ids=type
)
def test_task_taken_away_by_another_hub_ends_its_run_here(
    tmp_path: Path, trace: Trace, change: Command
) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + idle_agent_section("ada", trace)) as hub:
            hub.make(id="first")
            await wait_for_starts(trace, 1)
            for _ in range(50):  # at least as many loop turns as its own first lookups take
                await asyncio.to_thread(hub.task, "first")
            other = open_directory(tmp_path / "data", "", None, create=False)
            other.hub.submit(PERSON, change)
            other.hub.close()
            await hub.until_idle()
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(scenario())


BROKEN = "sys.exit(1)"


def claiming_agents(hub: RunningHub) -> list[str]:
    """Agents of all claims, in the order of the ledger."""
    read = (decode_event(entry) for entry in all_entries(hub.store))
    return [event.agent for event in read if isinstance(event, TaskClaimed)]


@proves("DISPATCH-FAIR")
def test_equal_agents_take_turns(tmp_path: Path) -> None:
    names = ("ada", "ben", "cyd")
    settings = FAST.replace("[dispatch]\n", "[dispatch]\nconcurrency = 1\n")
    settings += "".join(agent_section(name, "report()") for name in names)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            for _ in range(4):
                await hub.until_status(hub.make(), "review")
                await hub.until_idle()
            assert claiming_agents(hub) == ["ada", "ben", "cyd", "ada"]

    run(scenario())


@proves("DISPATCH-FAIR")
def test_agent_with_recent_failures_comes_last(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", BROKEN) + agent_section("ben", "report()")
    settings += "[retry]\nbase_ms = 1\n"

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            for _ in range(3):
                await hub.until_status(hub.make(), "review")
                await hub.until_idle()
            assert claiming_agents(hub) == ["ada", "ben", "ben", "ben"]

    run(scenario())


@proves("DISPATCH-FAIR")
@pytest.mark.parametrize("tasks", [3, 20])
def test_failing_agent_deadletters_no_task_that_another_agent_could_claim(
    tmp_path: Path, trace: Trace, tasks: int
) -> None:
    settings = FAST + "[retry]\nbase_ms = 1\n"
    settings += idle_agent_section("ben", trace) + agent_section("ada", BROKEN)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            hub.make("ben's for long", assignee="ben", priority="critical")
            await wait_for_starts(trace, 1)
            tasks_made = [hub.make() for _ in range(tasks)]
            most = min(tasks, 16)
            await hub.until(lambda: sum(hub.task(one).failures for one in tasks_made) >= most)
            # ada still gets the task that is reserved for her.
            reserved = await hub.until_status(hub.make("hers", assignee="ada"), "deadletter")
            assert reserved.failures == 5
            assert {hub.task(one).failures for one in tasks_made} <= {0, 1}
            hub.do(PauseAgent("ben", "it takes too long"))
            await hub.until_status(tasks_made[0], "deadletter")

    run(scenario())


class GatedPrograms:
    """Programs that ignore SIGTERM and end when their gate is opened."""

    def __init__(self, folder: Path, trace: Trace) -> None:
        self._folder = folder
        script = (
            'trap "" TERM; mkfifo "$1/$DRAGOMAN_TASK" 2>/dev/null; '
            'exec 3>"$0"; echo up >&3; read line <"$1/$DRAGOMAN_TASK"'
        )
        self.command = json.dumps(["sh", "-c", script, str(trace.path), str(folder)])

    def open(self, aof_id: str) -> None:
        """Let the program that works on this task end."""
        (self._folder / aof_id).write_text("go\n")


@proves("DISPATCH-CONCURRENCY")
def test_task_is_not_dispatched_while_its_old_program_lives_and_cancel_ends_all(
    tmp_path: Path, trace: Trace
) -> None:
    gates = GatedPrograms(tmp_path, trace)
    settings = FAST.replace("stop_grace_ms = 300", "stop_grace_ms = 3600000")
    settings += f"[agents.ada]\nconcurrency = 2\ncommand = {gates.command}\n"

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            running = asyncio.create_task(hub.dispatcher.run())
            first = hub.make("first")
            await wait_for_starts(trace, 1)
            hub.do(MoveTask(first, "ready"))
            other = hub.make("other")
            await wait_for_starts(trace, 1)
            assert hub.state("ada").running_tasks == (first, other)
            assert hub.task(first).status == "ready"
            await asyncio.to_thread(gates.open, hub.task(first).aof_id)
            await wait_for_starts(trace, 1)
            assert hub.state("ada").running_tasks == (other, first)
            assert (hub.task(first).attempts, hub.task(other).attempts) == (2, 1)
            running.cancel()
            await asyncio.wait({running}, timeout=30)
            assert running.cancelled()
            assert await asyncio.to_thread(trace.read_to_end) == b""

    run(scenario())


@proves("IDENTITY-ATTEMPT", "DISPATCH-STOP")
def test_timed_out_agent_may_still_report_partial_until_it_exits(
    tmp_path: Path, trace: Trace
) -> None:
    script = (
        'trap "" TERM; mkfifo "$1/gate"; exec 3>"$0"; echo "$DRAGOMAN_TOKEN" >&3; '
        'read line <"$1/gate"'
    )
    command = json.dumps(["sh", "-c", script, str(trace.path), str(tmp_path)])
    settings = FAST.replace("stop_grace_ms = 300", "stop_grace_ms = 3600000")
    settings += f"[agents.ada]\nattempt_ms = 1\ncommand = {command}\n"

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task, token = hub.make(), b""
            while not token.endswith(b"\n"):
                token += await asyncio.to_thread(trace.read)
            ada = hub.identity.authenticate(token.decode().strip(), "http")
            assert isinstance(ada, Principal), ada
            partial = ReportOutcome(task, "partial", "half of it", apply=True)
            assert hub.do(partial, actor=ada.actor).status == "review"
            await asyncio.to_thread((tmp_path / "gate").write_text, "go\n")

    run(scenario())


@proves("DISPATCH-MATCH")
def test_task_reserved_for_a_capability_goes_to_an_agent_that_has_it(
    tmp_path: Path,
) -> None:
    settings = FAST + agent_section(
        "ada", "report()", capabilities=["python"], takes_unassigned=False
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            unmatched, unassigned = hub.make("s", assignee="carl"), hub.make("a")
            matched = hub.make("p", assignee="python")
            done = await hub.until_status(matched, "review")
            assert done.assignee == "ada"
            assert done.reserved_for == "python"
            assert (hub.task(unmatched).status, hub.task(unassigned).status) == ("ready", "ready")

    run(scenario())


@proves("DISPATCH-MATCH", "ROLE-TABLE")
def test_observer_is_not_dispatched_and_its_state_gives_the_reason(tmp_path: Path) -> None:
    settings = FAST + agent_section("otto", "report()")
    settings += agent_section("ben", "report()", takes_unassigned=False)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            hub.do(RegisterAgent("otto", "observer"))
            task, other_task = hub.make(), hub.make(assignee="ben")
            async with asyncio.TaskGroup() as group:
                group.create_task(hub.dispatcher.run())
                await hub.until_status(other_task, "review")
                assert hub.task(task).status == "ready"
                reason = "otto is registered as observer, which may only read"
                assert hub.state("otto").idle_reason == reason
                hub.do(RegisterAgent("otto", "agent"))
                await hub.until_status(task, "review")
                hub.dispatcher.stop()
            assert not [line for line in hub.lines() if line.event == "command.refused"]

    run(scenario())


@proves("DISPATCH-CONCURRENCY", "ROLE-TABLE")
@pytest.mark.parametrize("renews_lease", [True, False], ids=["program", "remote"])
def test_agent_demoted_to_observer_is_stopped_and_its_task_requeued_without_a_failure(
    *, renews_lease: bool
) -> None:
    lab, agent = Lab(), ScriptedRunner(ends=False)
    agent.renews_lease = renews_lease
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    dispatcher = dispatcher_in_lab(lab, agent, ttl_ms=1_000)

    def is_over() -> bool:
        lease = lab.lease("one")
        if lease is not None and lease.heartbeats == 2:
            lab.do(HUMAN, RegisterAgent("ada", "observer"))
        return agent.stopped.is_set() and lab.task("one").status == "ready"

    asyncio.run(run_until(dispatcher, is_over))
    last = read_line([*stream_entries(lab.store, "task:one")][-1].line)
    assert (last.actor, lab.task("one").failures) == (HUB_ACTOR.label, 0)
    assert "ada is registered as observer, which may only read" in bytes(last.body).decode()


@proves("DISPATCH-BUDGET")
@pytest.mark.parametrize(
    ("limit", "program", "words"),
    [
        ({"attempts_per_day": 2}, "report()", "used 2 of 2 (attempts_per_day)"),
        ({"output_per_day": 1500}, "print('x' * 1000); report()", "(output_per_day)"),
        ({"cost_per_day": 0.5}, "report(cost=0.3)", "used 0.6 of 0.5 (cost_per_day)"),
    ],
    ids=["attempts", "output", "cost"],
)
def test_used_up_daily_budget_pauses_the_agent_once_until_midnight_across_restarts(
    tmp_path: Path, limit: dict[str, object], program: str, words: str
) -> None:
    settings = FAST + agent_section("ada", program, **limit)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            first, second = hub.make("1"), hub.make("2")
            await hub.until_status(first, "review")
            await hub.until_status(second, "review")
            await hub.until(lambda: bool(entry_bodies(hub, "agent.paused")))
            assert words in hub.state("ada").idle_reason
            third = hub.make("3")
        settings_with_ben = settings + agent_section("ben", "report()", takes_unassigned=False)
        async with running_hub(tmp_path / "data", settings_with_ben) as hub:
            await hub.until_status(hub.make("4", assignee="ben"), "review")
            assert words in hub.state("ada").idle_reason
            assert hub.task(third).status == "ready"
            [paused] = entry_bodies(hub, "agent.paused")
            assert words in paused
            assert "dragoman agent resume ada" in paused
            agent = find_agent(hub.store, "ada")
            assert agent is not None
            now = hub.directory.hub.clock.now()
            assert agent.active_pause(next_day_start(now) - 1)
            assert agent.active_pause(next_day_start(now)) is None

    run(scenario())


def entry_bodies(hub: RunningHub, event: str) -> list[str]:
    """Bodies of all entries of an event."""
    return [bytes(line.body).decode() for line in hub.lines() if line.event == event]


@proves("DISPATCH-BUDGET")
def test_resume_after_a_used_up_budget_grants_the_same_budget_again(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "report()", attempts_per_day=1)
    settings += agent_section("ben", "report()", takes_unassigned=False)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            hub.do(RegisterAgent("hera", "human"), RegisterAgent("boss", "orchestrator"))
            tasks = [hub.make(str(number)) for number in range(3)]
            for number, task in enumerate(tasks):
                await hub.until_status(task, "review")
                await hub.until(
                    lambda count=number + 1: len(entry_bodies(hub, "agent.paused")) == count
                )
                assert [hub.task(task).status for task in tasks].count("review") == number + 1
                assert hub.state("ada").usage.attempts == 1
                hub.do(ResumeAgent("ada"))
            letters = entry_bodies(hub, "mail.posted")
            assert len(letters) == 3
            assert '"to":["hera","boss"]' in letters[0]
            assert "used 1 of 1 (attempts_per_day) on " in letters[0]

    run(scenario())


class HubBudget:
    """Budget enforcement of one of several hubs for ada, who may make one attempt a day."""

    def __init__(self, lab: Lab) -> None:
        self._budgets = BudgetEnforcer(lab.hub, UsageInMemory(), list[str]().append)
        self._budgets.record_start("ada")

    def review(self) -> None:
        """Review the budget."""
        asyncio.run(self._budgets.review({"ada": Budget(attempts=1)}, ()))

    @property
    def is_idle(self) -> bool:
        return bool(self._budgets.idle_reason("ada", Budget(attempts=1)))


def count_events(lab: Lab, event: str) -> int:
    """Number of entries of an event."""
    return [entry.event for entry in all_entries(lab.store)].count(event)


@pytest.fixture
def two_hubs() -> tuple[Lab, HubBudget, HubBudget]:
    lab = Lab()
    lab.do(HUMAN, RegisterAgent("ada"))
    lab.do(HUMAN, RegisterAgent("hera", "human"))
    return lab, HubBudget(lab), HubBudget(lab)


@proves("DISPATCH-BUDGET", "DISPATCH-SHARED")
def test_resume_counts_at_every_hub(
    two_hubs: tuple[Lab, HubBudget, HubBudget],
) -> None:
    lab, one, other = two_hubs
    one.review()
    other.review()
    lab.do(HUMAN, ResumeAgent("ada"))
    one.review()
    other.review()
    assert not one.is_idle
    assert not other.is_idle
    assert count_events(lab, "mail.posted") == 1


@proves("DISPATCH-BUDGET")
def test_manual_pause_does_not_renew_the_budget(two_hubs: tuple[Lab, HubBudget, HubBudget]) -> None:
    lab, one, _ = two_hubs
    lab.do(HUMAN, PauseAgent("ada", "the build is broken"))
    one.review()
    lab.do(HUMAN, ResumeAgent("ada"))
    one.review()
    assert one.is_idle
    assert count_events(lab, "mail.posted") == 1


@proves("DISPATCH-BUDGET")
def test_attempts_count_toward_the_budget_from_their_start(tmp_path: Path, trace: Trace) -> None:
    settings = FAST + idle_agent_section("ada", trace, concurrency=3, attempts_per_day=2)
    settings += agent_section("ben", "report()", takes_unassigned=False)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            tasks = [hub.make(str(number)) for number in range(3)]
            await wait_for_starts(trace, 2)
            await hub.until(lambda: bool(entry_bodies(hub, "agent.paused")))
            await hub.until_status(hub.make("4", assignee="ben"), "review")
            assert [hub.task(task).status for task in tasks].count("in-progress") == 2
            assert hub.state("ada").usage.attempts == 2
        # The running attempt stays counted after the hub stopped.
        async with running_hub(tmp_path / "data", settings) as hub:
            await hub.until_status(hub.make("5", assignee="ben"), "review")
            assert hub.state("ada").usage.attempts == 2

    run(scenario())


@proves("RUN-NOT-STARTED")
def test_agent_that_failed_to_start_is_retried_when_its_cooldown_ends(tmp_path: Path) -> None:
    """The retry does not wait for the next poll, until which the agent would look healthy."""
    settings = FAST.replace("poll_ms = 200", "poll_ms = 3600000")
    settings += '[agents.ada]\ncommand = ["./no-such-agent"]\n'

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 2)

    run(scenario())


@proves("DISPATCH-BUDGET", "RUN-NOT-STARTED")
def test_unwritable_usage_file_does_not_fail_the_task(
    tmp_path: Path,
) -> None:
    settings = FAST + agent_section("ada", "report()", attempts_per_day=1)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            await hub.until(lambda: "agent:ada" in {line.stream for line in hub.lines()})
            usage_path = hub.data / "agent-usage.json"
            usage_path.mkdir()
            task = hub.make()
            await hub.until(lambda: hub.task(task).attempts == 1)
            back = await hub.until_status(task, "ready")
            await hub.until_idle()
            assert (back.failures, hub.state("ada").usage.attempts) == (0, 0)
            reason = f"ada could not be started: {usage_path}: Is a directory"
            assert hub.state("ada").idle_reason == reason
            usage_path.rmdir()
            await hub.until_status(task, "review")
            assert hub.state("ada").usage.attempts == 1

    run(scenario())


@proves("DISPATCH-BUDGET")
def test_usage_before_a_budget_is_set_counts_toward_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + agent_section("ada", "report()")) as hub:
            await hub.until_status(hub.make(), "review")
            await hub.until_idle()
        limited = FAST + agent_section("ada", "report()", attempts_per_day=1)
        async with running_hub(tmp_path / "data", limited) as hub:
            assert hub.state("ada").usage.attempts == 1
            task = hub.make()
            await hub.until(lambda: bool(entry_bodies(hub, "agent.paused")))
            assert hub.task(task).status == "ready"

    run(scenario())


@proves("AGENT-PAUSE")
def test_paused_agent_is_not_dispatched_until_resumed(tmp_path: Path) -> None:
    settings = FAST + agent_section("ada", "report()") + agent_section("ben", "report()")

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            hub.do(RegisterAgent("ada"), PauseAgent("ada", "the build is broken"))
            async with asyncio.TaskGroup() as group:
                group.create_task(hub.dispatcher.run())
                reserved = hub.make("hers", assignee="ada")
                unassigned = await hub.until_status(hub.make("anyone's"), "review")
                assert unassigned.assignee == "ben"
                assert hub.state("ada").idle_reason == "the build is broken"
                assert hub.task(reserved).status == "ready"
                hub.do(ResumeAgent("ada"))
                await hub.until_status(reserved, "review")
                hub.dispatcher.stop()
            # Agents that are started here are registered.
            assert find_agent(hub.store, "ben") is not None

    run(scenario())


@proves("DISPATCH-BUDGET")
def test_budgets_reset_daily_and_count_only_plain_numbers() -> None:
    midnight = 1_770_681_600_000
    used = replace(usage_today(Usage(), midnight - 1), attempts=1, is_notified=True)
    used = add_usage(used, ms=90_000, output=10, cost=2.5)
    assert used == Usage("2026-02-09", 1, 90_000, 10, 2.5, is_notified=True)
    assert (next_day_start(midnight - 1), next_day_start(midnight)) == (
        midnight,
        midnight + 86_400_000,
    )
    assert usage_today(used, midnight - 1) == used
    assert usage_today(used, midnight) == Usage("2026-02-10")
    assert exhaustion_message("ada", Budget(), used) == ""
    assert exhaustion_message("ada", Budget(minutes=2), used) == ""
    assert "1.5 of 1 (minutes_per_day)" in exhaustion_message("ada", Budget(minutes=1), used)
    assert parse_amount("cost", {"cost": 2}, None) == 2
    assert parse_amount("cost", {}, {"cost": 1.5}) == 1.5
    assert parse_amount("cost", {}, {"payload": {"cost": 0.1}}) == 0.1
    for nonsense in ("2", True, -1, None, float("nan")):
        assert parse_amount("cost", {"cost": nonsense}, {"payload": []}) == 0


@proves("REPORT-COST")
@pytest.mark.parametrize("cost", [1e12, 1e20, 1e308, float("inf"), 10**400])
def test_huge_cost_is_capped_and_uses_up_the_budget(cost: float) -> None:
    used = add_usage(
        Usage("2026-02-09"), ms=0, output=0, cost=parse_amount("cost", {"cost": cost}, None)
    )
    assert used.cost == 1e12
    assert "used 1000000000000 of 1000000000000 (cost_per_day)" in exhaustion_message(
        "ada", Budget(cost=1e12), used
    )


@proves("DISPATCH-STOP")
def test_stop_lets_agents_finish_within_the_grace_period(tmp_path: Path, trace: Trace) -> None:
    program = f"""
open({str(trace.path)!r}, "w").write("up\\n")
import select
select.select([], [], [], 0.5)
report()
"""
    settings = FAST.replace("drain_ms = 0", "drain_ms = 20000") + agent_section("ada", program)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings) as hub:
            task, waits = hub.make("1"), hub.make("2")
            await wait_for_starts(trace, 1)
            hub.dispatcher.stop()
            await hub.until_idle()
            assert hub.task(task).status == "review"
            assert hub.task(waits).status == "ready"

    run(scenario())


@proves("DISPATCH-STOP")
def test_stop_releases_unfinished_tasks_without_a_failure(tmp_path: Path, trace: Trace) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + idle_agent_section("ada", trace)) as hub:
            task = hub.make()
            await wait_for_starts(trace, 1)
            hub.dispatcher.stop()
            await hub.until_idle()
            assert await asyncio.to_thread(trace.read_to_end) == b""
            ended = hub.view(task)
            assert (ended.task.status, ended.task.failures, ended.lease) == ("ready", 0, None)
            last = read_line([*stream_entries(hub.store, f"task:{task}")][-1].line)
            assert last.actor == HUB_ACTOR.label, "what the hub gives back, no agent has given back"
            assert "hub_stopped" in bytes(last.body).decode()

    run(scenario())


@proves("DISPATCH-RESTART")
def test_expired_lease_of_an_orphan_is_left_to_lease_expiry() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    lab.do(HUB_ACTOR, ClaimTask("one", "ada", "lab.1", 1_000))
    lab.clock.advance(1_000)
    settled = list[str]()
    swept = frozenset({"lab.0"})  # it is forgotten when everything is settled
    dispatcher = dispatcher_in_lab(
        lab, ScriptedRunner(), sweep=lambda: swept, forget=settled.append
    )
    asyncio.run(run_until(dispatcher, lambda: bool(settled)))
    assert lab.task("one").status == "in-progress"
    assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now()) == 1
    assert (lab.task("one").attempts, lab.task("one").failures) == (1, 1)


@proves("DISPATCH-STOP")
@pytest.mark.parametrize("is_stopping", [False, True], ids=["immediately", "while-stopping"])
def test_cancelled_dispatcher_does_not_wait_for_an_agent_that_ignores_sigterm(
    tmp_path: Path, trace: Trace, *, is_stopping: bool
) -> None:
    ignores_sigterm = "trap '' TERM; exec 3>\"$0\"; echo up >&3; while :; do sleep 100; done"
    settings = FAST.replace("stop_grace_ms = 300", "stop_grace_ms = 3600000")
    settings += (
        f"[agents.ada]\ncommand = {json.dumps(['sh', '-c', ignores_sigterm, str(trace.path)])}\n"
    )

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", settings, start=False) as hub:
            running = asyncio.create_task(hub.dispatcher.run())
            task = hub.make()
            await wait_for_starts(trace, 1)
            if is_stopping:
                hub.dispatcher.stop()
                await asyncio.wait({running}, timeout=0.2)
            running.cancel()
            await asyncio.wait({running}, timeout=30)
            assert running.cancelled()
            assert await asyncio.to_thread(trace.read_to_end) == b""
            ended = hub.view(task)
            assert (ended.task.status, ended.task.failures, ended.lease) == ("ready", 0, None)

    run(scenario())


@proves("DISPATCH-IDLE")
def test_dispatcher_without_agents_idles_until_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_hub(tmp_path / "data", "") as hub:
            hub.make()
            assert hub.dispatcher.agent_states() == []

    run(scenario())


class ScriptedRunner:
    """A runner whose agents send the given messages and record that they were stopped."""

    renews_lease = True
    output_bytes = 0

    def __init__(self, *messages: bytes, ends: bool = True) -> None:
        self._messages = messages
        self._ends = ends
        self.notes = list[str]()
        self.stopped = asyncio.Event()

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "ScriptedRunner":
        """Start, and send all messages."""
        self.notes += [await on_message(message) for message in self._messages]
        return self

    async def wait(self) -> RunExit:
        """Wait until stopped, unless it ends by itself."""
        if not self._ends:
            await self.stopped.wait()
        return RunExit()

    async def stop(self, grace: float, reason: str = "") -> None:
        """Stop the agent."""
        self.stopped.set()

    def forget(self) -> None:
        """Forget the session: nothing is stored."""


class UsageInMemory:
    """Usage of agents, in memory."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def load(self) -> bytes:
        return self.data

    def save(self, data: bytes) -> None:
        self.data = data


DEFAULT_BACKOFF = Backoff()


def _forget_nothing(_: str) -> None:
    """Accept a settled session without recording it."""


def dispatcher_in_lab(
    lab: Lab,
    runner: ScriptedRunner,
    usage: bytes = b"",
    *,
    usage_store: UsageInMemory | None = None,
    ttl_ms: int = 60_000,
    attempt_ms: int = 0,
    backoff: Backoff = DEFAULT_BACKOFF,
    poll_ms: int = 10,
    sweep: StopOrphans = frozenset,
    forget: ForgetSession = _forget_nothing,
    new_id: SequentialIds | None = None,
) -> Dispatcher:
    """A dispatcher on the clock and the store of a lab."""
    faults = [StoreUnavailable("the disk is away"), LedgerError("a line is broken")]

    async def submit(actor: Actor, message: bytes) -> str:
        if faults:
            raise faults.pop(0)
        return f"{actor.name} says {message.decode()}"

    outside = DispatcherPorts(
        submit_message=submit,
        stop_orphans=sweep,
        forget_session=forget,
        usage=usage_store or UsageInMemory(usage),
        new_id=new_id or SequentialIds(),
        warn=list[str]().append,
    )
    policy = DispatchPolicy("lab", 1, ttl_ms, poll_ms, 0, RunPolicy(backoff, 1.0))
    ada = AgentSpec(
        "ada",
        runner,
        ("", "ada"),
        lambda task, agent: f"{agent}: {task.title}",
        attempt_ms=attempt_ms,
    )
    return Dispatcher(lab.hub, [ada], policy, outside)


async def run_until(dispatcher: Dispatcher, is_over: Callable[[], bool]) -> list[str]:
    """Run the dispatcher until a condition holds; returns the problems that it showed."""
    problems = list[str]()
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        group.create_task(dispatcher.run())
        while not is_over():
            problems.append(dispatcher.problem.message)
            await asyncio.sleep(0)
        dispatcher.stop()
    return problems


class StoreFailingIds(SequentialIds):
    """Ids that make the store fail when the first one is made: the claim comes next."""

    def __init__(self, lab: Lab, losses: int, faults: list[Exception | None]) -> None:
        super().__init__()
        self._pending = [(losses, faults)]
        self._store = lab.store

    def __call__(self) -> str:
        """Return the next id."""
        if self._pending:
            self._store.losses, self._store.faults = self._pending.pop()
        return super().__call__()


STORE_DOWN = StoreUnavailable("the disk is away")


@proves("DISPATCH-STORE")
@pytest.mark.parametrize(
    ("losses", "faults"),
    [(1, [None, STORE_DOWN, STORE_DOWN]), (0, [STORE_DOWN, STORE_DOWN])],
    ids=["claimed", "not claimed"],
)
def test_claim_without_an_answer_is_started_once_the_store_is_back(
    losses: int, faults: list[Exception | None]
) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    dispatcher = dispatcher_in_lab(
        lab, ScriptedRunner(), new_id=StoreFailingIds(lab, losses, faults)
    )
    problems = asyncio.run(run_until(dispatcher, lambda: lab.task("one").status == "review"))
    assert any(problems)
    assert (lab.task("one").attempts, lab.task("one").failures) == (1, 0)


@proves("DISPATCH-STORE")
def test_unavailable_store_is_reported_and_retried() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    lab.store.faults = [StoreUnavailable("the disk is away")] * 3
    dispatcher = dispatcher_in_lab(lab, ScriptedRunner(), usage=b"this is no JSON")
    problems = asyncio.run(run_until(dispatcher, lambda: lab.task("one").status == "review"))
    assert "the disk is away" in problems
    assert dispatcher.problem.message == ""


@proves("DISPATCH-STORE", "DISPATCH-RESTART")
def test_store_unavailable_at_start_is_retried_and_swept_sessions_are_kept_until_recorded() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    lab.do(HUB_ACTOR, ClaimTask("one", "ada", "lab.1"))
    swept, forgotten = [frozenset({"lab.1"})], list[tuple[str, int]]()

    def forget(session: str) -> None:
        forgotten.append((session, lab.task("one").failures))

    # The agent is registered, then the store fails twice.
    lab.store.faults = [None, *[StoreUnavailable("the disk is away")] * 2]
    dispatcher = dispatcher_in_lab(lab, ScriptedRunner(), sweep=swept.pop, forget=forget)
    problems = asyncio.run(run_until(dispatcher, lambda: bool(forgotten)))
    assert "the disk is away" in problems
    # Not before it is recorded: a hub that is killed in between must still find the mark.
    assert forgotten == [("lab.1", 1)]
    assert lab.task("one").attempts == 1


RELEASE = ReleaseTask("one", "not for me")


class ReleasingRunner(ScriptedRunner):
    """A runner whose agent releases its task each time."""

    def __init__(self, lab: Lab, command: Command = RELEASE) -> None:
        super().__init__()
        self._lab = lab
        self._command = command
        self.starts = list[float]()

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "ScriptedRunner":
        """Release the task."""
        self.starts.append(asyncio.get_running_loop().time())
        ada = Actor("agent", "ada", "http", assignment.task, assignment.fence)
        await self._lab.hub.submit_async(ada, self._command)
        return self


@proves("DISPATCH-ORDER", "LEASE-RELEASE")
def test_released_task_waits_for_a_growing_cooldown() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))

    async def scenario() -> list[float]:
        agent = ReleasingRunner(lab)
        await run_until(
            dispatcher_in_lab(lab, agent, backoff=Backoff(50, 1_000)),
            lambda: len(agent.starts) == 4,
        )
        return agent.starts

    cooldowns = [after - before for before, after in pairwise(asyncio.run(scenario()))]
    assert all(
        cooldown >= minimum for cooldown, minimum in zip(cooldowns, (0.05, 0.1, 0.2), strict=True)
    )
    assert (lab.task("one").failures, lab.task("one").not_before) == (0, 0)


@proves("DISPATCH-ORDER", "LEASE-RELEASE")
def test_released_task_is_dispatched_when_its_cooldown_ends_not_at_the_next_poll() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))

    async def scenario() -> None:
        agent = ReleasingRunner(lab)
        slow_poller = dispatcher_in_lab(lab, agent, backoff=Backoff(50, 1_000), poll_ms=3_600_000)
        await run_until(slow_poller, lambda: len(agent.starts) == 3)

    asyncio.run(scenario())


@proves("DISPATCH-ORDER", "LEASE-RELEASE")
def test_cooldown_grows_and_is_reset_by_another_outcome_or_by_time() -> None:
    cooldowns, release = Cooldowns(Backoff(1_000, 3_000)), ReleaseEvent("ada", "")

    def releases(now: float) -> list[int]:
        return [cooldown.release_count for cooldown in cooldowns.active(now)]

    cooldowns.record_end("T", 0.0, release)
    assert (releases(0.9), releases(1.0)) == ([1], [])
    cooldowns.record_end("T", 1.0, release)
    assert (releases(2.9), releases(3.0)) == ([2], [])
    words = "T is in cooldown for 2 s: ada released it 2 times"
    assert (cooldowns.describe_next([""], 1.0), cooldowns.describe_next(["ben"], 1.0)) == (
        words,
        "",
    )
    cooldowns.record_end("T", 3.0, None)
    cooldowns.record_end("T", 4.0, release)
    assert (releases(4.9), releases(5.0)) == ([1], [])
    assert releases(8.0) == []
    cooldowns.record_end("T", 8.0, release)
    assert (releases(8.9), releases(9.0)) == ([1], [])


@proves("DISPATCH-ORDER", "LEASE-RELEASE")
@pytest.mark.parametrize("reason", ["MANUAL", "TIMEOUT"])
def test_only_a_voluntary_checkpoint_starts_a_cooldown(reason: str) -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    agent = ReleasingRunner(lab, CheckpointTask("one", reason, "abc123"))
    dispatcher = dispatcher_in_lab(lab, agent, backoff=Backoff(3_600_000, 3_600_000))

    def is_decided() -> bool:
        in_cooldown = "one is in cooldown for" in dispatcher.agent_states()[0].idle_reason
        return len(agent.starts) > 1 if reason == "TIMEOUT" else in_cooldown

    asyncio.run(run_until(dispatcher, is_decided))
    assert (len(agent.starts) == 1) == (reason == "MANUAL")


class OvertakenRunner(ScriptedRunner):
    """A runner whose agent fails, and whose task another agent claims before it has ended."""

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab

    async def start(self, assignment: Assignment, on_message: OnMessage) -> "ScriptedRunner":
        """Report a failure with its cost."""
        task, cost = assignment.task, dict[str, object](cost=0.3)
        ada = Actor("agent", "ada", "http", task, assignment.fence)
        failed = ReportOutcome(task, "failed", details=cost, apply=True, backoff=Backoff(0))
        await self._lab.hub.submit_async(ada, failed)
        await self._lab.hub.submit_async(HUMAN, ClaimTask(task, "ben"))
        return self


@proves("DISPATCH-BUDGET", "REPORT-COST")
def test_cost_counts_after_another_agent_has_claimed_the_task() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    dispatcher = dispatcher_in_lab(lab, OvertakenRunner(lab))
    asyncio.run(run_until(dispatcher, lambda: dispatcher.agent_states()[0].usage.cost == 0.3))
    assert lab.task("one").assignee == "ben"


class SlowToStopRunner(ScriptedRunner):
    """A runner whose agent ends only when the test allows it."""

    def __init__(self) -> None:
        super().__init__(ends=False)
        self.stop_requested = asyncio.Event()
        self.may_end = asyncio.Event()

    async def stop(self, grace: float, reason: str = "") -> None:
        """Stop once the test allows it."""
        self.stop_requested.set()
        await self.may_end.wait()
        self.stopped.set()


@proves("DISPATCH-CONCURRENCY")
def test_agent_being_stopped_keeps_its_task_until_it_has_ended() -> None:
    lab, beats = Lab(), SimpleQueue[Collection[str]]()
    lab.hub = Hub(Engine(lab.store, lab.clock, b"secret", on_leases=beats.put), SequentialIds())
    lab.do(HUMAN, CreateTask("one", "one", ready=True))

    async def scenario() -> None:
        agent = SlowToStopRunner()
        dispatcher = dispatcher_in_lab(lab, agent, ttl_ms=1_000, attempt_ms=1)
        async with asyncio.TaskGroup() as group, asyncio.timeout(30):
            group.create_task(dispatcher.run())
            await agent.stop_requested.wait()
            while not beats.empty():
                beats.get()
            for _ in range(3):  # each heartbeat extends the lease
                await asyncio.to_thread(beats.get)
                lab.clock.advance(600)
            assert lab.task("one").status == "in-progress"
            assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now()) == 0
            agent.may_end.set()
            await dispatcher.wait_idle()
            dispatcher.stop()

    asyncio.run(scenario())
    ended = lab.task("one")
    assert (ended.status, ended.attempts, ended.failures) == ("ready", 1, 1)


@proves("DISPATCH-STORE")
def test_messages_and_settlement_wait_for_an_unavailable_store() -> None:
    lab, agent = Lab(), ScriptedRunner(b"one", b"two", b"three")
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    # First lookup, claim, first heartbeat, then the end of the attempt, which is retried.
    lab.store.faults = [None, None, None, StoreUnavailable("the disk is away")]
    dispatcher = dispatcher_in_lab(lab, agent)
    asyncio.run(run_until(dispatcher, lambda: lab.task("one").status == "review"))
    assert agent.notes[0] == "this message was not processed: a line is broken"
    assert agent.notes[1:] == ["ada says two", "ada says three"]
    assert dispatcher.problem.message == ""


@proves("MAIL-SPAWN")
def test_started_agent_sends_a_heartbeat_immediately() -> None:
    lab = Lab()
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    dispatcher = dispatcher_in_lab(lab, ScriptedRunner(ends=False))

    def has_begun() -> bool:
        lease = lab.lease("one")
        return lease is not None and lease.heartbeats > 1

    asyncio.run(run_until(dispatcher, has_begun))


@proves("DISPATCH-CLOCK")
def test_clock_jump_of_a_day_ends_the_attempt_without_double_work() -> None:
    lab, agent, beats = Lab(), ScriptedRunner(ends=False), SimpleQueue[Collection[str]]()
    lab.hub = Hub(Engine(lab.store, lab.clock, b"secret", on_leases=beats.put), SequentialIds())
    lab.do(HUMAN, CreateTask("one", "one", ready=True))
    dispatcher = dispatcher_in_lab(lab, agent, ttl_ms=1_000)

    async def scenario() -> None:
        async with asyncio.TaskGroup() as group, asyncio.timeout(30):
            group.create_task(dispatcher.run())
            await asyncio.to_thread(beats.get)
            lab.clock.advance(-86_400_000)
            await asyncio.to_thread(beats.get)
            await asyncio.to_thread(beats.get)
            assert not agent.stopped.is_set()
            lab.clock.advance(2 * 86_400_000)
            await agent.stopped.wait()
            assert lab.task("one").status == "in-progress"
            dispatcher.stop()

    asyncio.run(scenario())
    assert LeaseExpiry(lab.hub, Backoff()).run_once(lab.clock.now()) == 1
    assert (lab.task("one").status, lab.task("one").attempts) == ("ready", 1)
