"""Commands that wait, in processes of their own, with and without a hub."""

import signal
from contextlib import nullcontext

import pytest

from tests.e2e.hub_process import run_hub, wait_for_event
from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves

pytestmark = proves("CLI-TASK-WAIT")

WITH_AND_WITHOUT = pytest.mark.parametrize("has_hub", [False, True], ids=["alone", "hub"])


@WITH_AND_WITHOUT
def test_two_agents_wait_for_work_and_each_gets_a_task(program: Program, has_hub: bool) -> None:
    program.prepare("init")
    with run_hub(program) if has_hub else nullcontext():
        waiting = [
            program.start("task", "claim", "--agent", agent, "--wait", "10m", "--json")
            for agent in ("ada", "ben")
        ]
        for title in ("One", "Two"):
            program.ask("task", "create", title, "--ready")
        claimed = [wait_for_exit(process) for process in waiting]

    assert [result.code for result in claimed] == [0, 0]
    assert len({result.json["id"] for result in claimed}) == 2


@WITH_AND_WITHOUT
def test_question_is_answered_while_its_agent_waits(program: Program, has_hub: bool) -> None:
    ask = ("task", "ask", "T-1", "UTC?", "--agent", "ada", "--wait")
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")
    program.prepare("task", "claim", "T-1", "--agent", "ada")
    with run_hub(program) if has_hub else nullcontext():
        interrupted = program.start(*ask)
        wait_for_event(program, "T-1", lambda line: line["type"] == "question.asked")
        interrupted.send_signal(signal.SIGINT)
        assert wait_for_exit(interrupted).code in (130, -signal.SIGINT)
        waiting = program.start(*ask)
        program.ask("task", "answer", "T-1", "UTC.")
        answered = wait_for_exit(waiting)

    assert (answered.code, answered.out, answered.err) == (0, "UTC.\n", "")


def test_agent_goes_on_waiting_when_the_hub_is_killed(program: Program) -> None:
    program.prepare("task", "create", "One", "--id", "T-1", "--ready")
    program.prepare("task", "claim", "T-1", "--agent", "ada")
    with run_hub(program) as hub:
        waiting = program.start("task", "ask", "T-1", "UTC?", "--agent", "ada", "--wait")
        wait_for_event(program, "T-1", lambda line: line["type"] == "question.asked")
        hub.process.kill()
        hub.process.communicate()
    program.ask("task", "answer", "T-1", "UTC.")
    answered = wait_for_exit(waiting)

    assert (answered.code, answered.out) == (0, "UTC.\n")
