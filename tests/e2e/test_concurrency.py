"""Several processes on one directory: they wait for each other, and a task has one holder."""

from concurrent.futures import ThreadPoolExecutor

from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves


@proves("STORE-CLAIM-RACE")
def test_exactly_one_of_many_processes_claims_a_task(program_per_store: Program) -> None:
    program_per_store.prepare("task", "create", "One", "--id", "T-1", "--ready")

    processes = [
        program_per_store.start("task", "claim", "T-1", "--agent", f"a-{n}", "--json")
        for n in range(6)
    ]
    ended = [wait_for_exit(process) for process in processes]

    winners = [answer.json for answer in ended if answer.code == 0]
    losers = [answer.json["code"] for answer in ended if answer.code == 1]
    assert len(winners) == 1
    assert losers == ["already_claimed"] * 5
    assert program_per_store.ask_here("task", "show", "T-1")["assignee"] == winners[0]["agent"]
    assert program_per_store.ask_here("verify")["findings"] == []


@proves("STORE-CLAIM-RACE", "TASK-READY")
def test_concurrent_claims_of_the_next_task_get_different_ones(program_per_store: Program) -> None:
    for number in range(3):
        program_per_store.prepare("task", "create", f"{number}", "--id", f"T-{number}", "--ready")

    processes = [
        program_per_store.start("task", "claim", "--agent", f"a-{n}", "--json") for n in range(5)
    ]
    ended = [wait_for_exit(process) for process in processes]

    assert sorted(e.json["id"] for e in ended if e.code == 0) == ["T-0", "T-1", "T-2"]
    assert [e.json["code"] for e in ended if e.code == 1] == ["nothing_ready"] * 2


@proves("CLI-PROMISES", "STORE-SECOND-HUB", "NAME-AOF-ID", "CLI-INIT")
def test_concurrent_first_commands_all_succeed(program_per_store: Program) -> None:
    def create(number: int) -> str:
        return str(program_per_store.ask("task", "create", f"Task {number}")["id"])

    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(create, range(8)))

    assert len(set(made)) == 8
    verdict = program_per_store.ask_here("verify")
    assert (verdict["entries"], verdict["findings"]) == (8, [])


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_follower_sees_entries_of_other_processes_once(program_per_store: Program) -> None:
    program_per_store.prepare("init")
    following = program_per_store.start("events", "--follow", "--limit", "4", "--json")

    for number in range(4):
        program_per_store.prepare("task", "create", f"{number}", "--id", f"T-{number}")
    ended = wait_for_exit(following)

    assert ended.code == 0
    assert [f'"stream": "task:T-{n}"' in line for n, line in enumerate(ended.out.splitlines())] == [
        True
    ] * 4
