"""The demo's story: real messages to a real hub. What is told is what the hub has answered."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, MoveTask
from dragoman.core.moments import to_rfc3339
from dragoman.engine.plan import Answer
from dragoman.surfaces.cli.demo.stage import Stage, outcome
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.verify import counts, examine, no_bars

_MIA = Actor("human", "mia", "demo")
_ADA = Actor("agent", "ada", "demo")
_BEN = Actor("agent", "ben", "demo")

_HOUR_MS = 3_600_000


class Step(Struct, frozen=True):
    """One line of the scenario: who did what, and why it matters."""

    at: int
    who: str
    what: str
    why: str = ""


class Cast(Struct):
    """Ids of the two tasks of the scenario; the hub assigns them."""

    login: str = ""
    test: str = ""


Act = Callable[[Stage, Cast], Iterator[Step]]


def play(stage: Stage) -> Iterator[Step]:
    """Run the whole scenario, step by step."""
    cast = Cast()
    for act in _ACTS:
        yield from act(stage, cast)


def _dispatch(stage: Stage, cast: Cast) -> Iterator[Step]:
    made = stage.do(_MIA, CreateTask("Login by e-mail", ready=True))
    cast.login = made.task
    yield _step(stage, "mia", f'creates {made.task} "Login by e-mail": {made.status}')
    stage.wait(5)
    held = stage.do(_ADA, ClaimTask(cast.login, "ada", "ada-1"))
    yield _step(
        stage,
        "ada",
        f"claims {_short(cast.login)}: attempt {held.attempt}, lease {_until(held.expires_at)}",
        "A claim is a lease: ada must show signs of life, or lose it.",
    )


def _progress(stage: Stage, cast: Cast) -> Iterator[Step]:
    stage.wait(175)
    words = "form and mail are written"
    said = {"taskId": cast.login, "agentId": "ada", "progress": words}
    answer = stage.send(_ADA, "status.update", cast.login, said)
    yield _step(
        stage,
        "ada",
        f'status.update "{words}": {outcome(answer)}',
        f"A line in the work log. It shows life too: lease {_until(_lease(stage, cast.login))}.",
    )


def _hand_off(stage: Stage, cast: Cast) -> Iterator[Step]:
    stage.wait(60)
    made = stage.do(
        _ADA, CreateTask("Test the login", ready=True, assignee="ben", parent=cast.login)
    )
    cast.test = made.task
    answer = stage.send(_ADA, "handoff.request", cast.test, _request(stage, cast), to="ben")
    yield _step(
        stage,
        "ada",
        f"creates {made.task}, a part of {_short(cast.login)}: {made.status}",
    )
    yield _step(
        stage,
        "ada",
        f"handoff.request to ben: {_short(cast.test)} stays {outcome(answer)}",
        "What is asked for lies in the task's folder: inputs/handoff.md.",
    )
    stage.wait(30)
    stage.send(_BEN, "handoff.accepted", cast.test, {"taskId": cast.test, "accepted": True})
    held = stage.do(_BEN, ClaimTask(cast.test, "ben", "ben-1"))
    yield _step(
        stage,
        "ben",
        f"handoff.accepted, and claims {_short(cast.test)}: attempt {held.attempt}, "
        f"lease {_until(held.expires_at)}",
    )


def _crash(stage: Stage, cast: Cast) -> Iterator[Step]:
    stage.wait(30)
    yield _step(
        stage,
        "ada",
        "crashes in the middle of its work, without a word",
        "Nobody has to notice: its lease will end by itself.",
    )
    stage.wait(90)
    answer = _report(stage, _BEN, cast.test, "All tests pass.")
    yield _step(
        stage,
        "ben",
        f"completion.report done: {_short(cast.test)} is {outcome(answer)} until its session ends",
        "run_result.json is on the disk.",
    )
    stage.wait(1)
    yield _step(stage, "ben", "crashes too, before its session has ended")


def _recover(stage: Stage, cast: Cast) -> Iterator[Step]:
    _wait_for_end(stage, cast.login)
    yield _step(
        stage,
        "hub",
        f"ticks: {_short(cast.login)} {stage.last_move(cast.login)}",
        "ada has reported nothing: somebody may begin anew.",
    )
    _wait_for_end(stage, cast.test)
    yield _step(
        stage,
        "hub",
        f"ticks: {_short(cast.test)} {stage.last_move(cast.test)}",
        "ben had reported: work that is finished is not done twice.",
    )


def _begin_anew(stage: Stage, cast: Cast) -> Iterator[Step]:
    stage.wait(30)
    held = stage.do(_BEN, ClaimTask(cast.login, "ben", "ben-2"))
    yield _step(
        stage,
        "ben",
        f"is back and claims {_short(cast.login)}: attempt {held.attempt}, fence {held.fence}",
    )
    stage.wait(40)
    answer = _report(stage, _ADA, cast.login, "Done.")
    yield _step(
        stage,
        "ada",
        f"is back too, completion.report done: {outcome(answer)}",
        "Work from the past cannot overwrite the present.",
    )


def _finish(stage: Stage, cast: Cast) -> Iterator[Step]:
    stage.wait(120)
    _report(stage, _BEN, cast.login, "Login by e-mail works.")
    answer = stage.call(_BEN, "session_end", {"sessionId": "ben-2"})
    yield _step(
        stage,
        "ben",
        f"completion.report done, session_end: {_short(cast.login)} is in {outcome(answer)}",
        "Nobody approves their own work: a person looks at it first.",
    )
    stage.wait(300)
    approved = [stage.do(_MIA, MoveTask(task, "done", "good")) for task in (cast.test, cast.login)]
    now = ", ".join(f"{_short(receipt.task)} is {receipt.status}" for receipt in approved)
    yield _step(stage, "mia", f"reviews both: {now}")


def _prove(stage: Stage, cast: Cast) -> Iterator[Step]:
    del cast
    stage.wait(1)
    verdict = examine(stage.place, no_bars)
    found = "all good" if not verdict.found else f"{verdict.found} findings"
    yield _step(
        stage,
        "hub",
        f"verifies: {counts(verdict)}: {found}",
        "Ledger, states and files agree: a change or a gap would show.",
    )


_ACTS: tuple[Act, ...] = (
    _dispatch,
    _progress,
    _hand_off,
    _crash,
    _recover,
    _begin_anew,
    _finish,
    _prove,
)


def _request(stage: Stage, cast: Cast) -> dict[str, Any]:
    return {
        "taskId": cast.test,
        "parentTaskId": cast.login,
        "fromAgent": "ada",
        "toAgent": "ben",
        "acceptanceCriteria": ["A wrong code is refused", "A code works once only"],
        "expectedOutputs": ["outputs/summary.md"],
        "contextRefs": [f"tasks/in-progress/{cast.login}.md"],
        "constraints": ["No new dependencies"],
        "dueBy": to_rfc3339(stage.clock.now() + 3 * _HOUR_MS),
    }


def _report(stage: Stage, agent: Actor, task: str, notes: str) -> Answer:
    """Write a summary file, then report the task done."""
    stage.write(f"tasks/in-progress/{task}/outputs/summary.md", f"{notes}\n")
    payload: dict[str, Any] = {
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": [],
        "tests": {"total": 12, "passed": 12, "failed": 0},
        "blockers": [],
        "notes": notes,
    }
    return stage.send(agent, "completion.report", task, payload)


def _wait_for_end(stage: Stage, task: str) -> None:
    """Advance the clock to five seconds after the end of the task's lease, then tick."""
    stage.clock.advance(_lease(stage, task) - stage.clock.now() + 5_000)
    stage.tick()


def _lease(stage: Stage, task: str) -> int:
    """Expiry of the task's lease."""
    lease = look_at(stage.place.hub, task).lease
    assert lease is not None, "somebody holds the task"
    return lease.expires_at


def _until(moment: int) -> str:
    return f"until {to_rfc3339(moment)[11:19]}"


def _short(task: str) -> str:
    """Last part of a task's id, enough to tell the two tasks apart."""
    return task.rpartition("-")[2]


def _step(stage: Stage, who: str, what: str, why: str = "") -> Step:
    return Step(stage.clock.now(), who, what, why)
