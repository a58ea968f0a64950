"""Several processes on one directory: they wait for each other, and a task has one winner."""

from concurrent.futures import ThreadPoolExecutor

from tests.e2e.program import Program, end_of
from tests.requirements import proves


@proves("STORE-CLAIM-RACE")
def test_of_many_processes_that_claim_one_task_exactly_one_wins(anywhere: Program) -> None:
    anywhere.prepare("task", "create", "One", "--id", "T-1", "--ready")

    racing = [
        anywhere.start("task", "claim", "T-1", "--agent", f"a-{n}", "--json") for n in range(6)
    ]
    ended = [end_of(process) for process in racing]

    winners = [answer.json for answer in ended if answer.code == 0]
    losers = [answer.json["code"] for answer in ended if answer.code == 1]
    assert len(winners) == 1
    assert losers == ["already_claimed"] * 5
    assert anywhere.ask_here("task", "show", "T-1")["assignee"] == winners[0]["agent"]
    assert anywhere.ask_here("verify")["findings"] == []


@proves("STORE-CLAIM-RACE", "TASK-READY")
def test_processes_that_ask_for_the_next_task_get_different_ones(anywhere: Program) -> None:
    for number in range(3):
        anywhere.prepare("task", "create", f"{number}", "--id", f"T-{number}", "--ready")

    racing = [anywhere.start("task", "claim", "--agent", f"a-{n}", "--json") for n in range(5)]
    ended = [end_of(process) for process in racing]

    assert sorted(e.json["id"] for e in ended if e.code == 0) == ["T-0", "T-1", "T-2"]
    assert [e.json["code"] for e in ended if e.code == 1] == ["nothing_ready"] * 2


@proves("CLI-PROMISES", "STORE-SECOND-HUB", "NAME-AOF-ID", "CLI-INIT")
def test_commands_that_come_at_once_all_succeed_even_the_first_ones(anywhere: Program) -> None:
    def create(number: int) -> str:
        return str(anywhere.ask("task", "create", f"Task {number}")["id"])

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(create, range(8)))

    assert len(set(made)) == 8
    verdict = anywhere.ask_here("verify")
    assert (verdict["entries"], verdict["findings"]) == (8, [])


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_a_follower_sees_what_other_processes_write_each_once(anywhere: Program) -> None:
    anywhere.prepare("init")
    following = anywhere.start("events", "--follow", "--limit", "4", "--json")

    for number in range(4):
        anywhere.prepare("task", "create", f"{number}", "--id", f"T-{number}")
    ended = end_of(following)

    assert ended.code == 0
    assert [f'"stream": "task:T-{n}"' in line for n, line in enumerate(ended.out.splitlines())] == [
        True
    ] * 4
