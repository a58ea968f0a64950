"""events: the ledger from any position on, by task and type, and as it happens."""

import pytest

from dragoman.core.events import EVENT_NAMES
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console


@pytest.fixture
def lived(dragoman: Console) -> Console:
    """Give a ledger of six entries about two tasks, one of them a refusal."""
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "T-2", "--alias", "bead:b-2", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ben", "--now", NOON, code=1)
    dragoman.ask("task", "move", "b-2", "ready", "--reason", "now", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "review", "--as", "ada", "--now", NOON)
    return dragoman


def positions(dragoman: Console, *words: str) -> list[int]:
    return [entry["position"] for entry in dragoman("events", *words, "--json").objects]


@proves("CLI-EVENTS", "LEDGER-POSITION")
def test_each_line_of_json_is_an_entry(lived: Console) -> None:
    entries = lived("events", "--json").objects

    assert [entry["position"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert entries[2].keys() == {
        *("ok", "position", "stream", "version", "type"),
        *("at", "actor", "via", "cause", "body", "hash"),
    }
    assert all(entry["ok"] is True for entry in entries), "as every success is told"
    claimed = entries[2]
    assert (claimed["stream"], claimed["version"], claimed["type"]) == (
        "task:T-1",
        2,
        "task.claimed",
    )
    assert (claimed["at"], claimed["actor"]) == ("2026-02-09T12:00:00.000Z", "agent:ada")
    assert claimed["body"]["fence"] == 1
    assert bytes.fromhex(claimed["hash"])


@proves("CLI-EVENTS")
def test_the_ledger_can_be_narrowed(lived: Console) -> None:
    assert positions(lived, "--after", "4") == [5, 6]
    assert positions(lived, "--after", "-2") == [5, 6]
    assert positions(lived, "--after", "-100") == [1, 2, 3, 4, 5, 6]
    assert positions(lived, "--after", "99") == []
    assert positions(lived, "--limit", "2") == [1, 2]
    assert positions(lived, "--task", "T-1") == [1, 3, 6]
    assert positions(lived, "--task", "b-2", "--after", "2") == [5]
    assert positions(lived, "--type", "task.created") == [1, 2]
    assert positions(lived, "--type", "command") == [4]
    assert positions(lived, "--task", "T-1", "--type", "task.transitioned", "--limit", "9") == [6]
    assert lived.ask("events", "--task", "T-9", code=1)["code"] == "task_not_found"


@proves("CLI-EVENTS", "REFUSAL-RECORDED")
def test_people_read_position_time_actor_task_and_what_happened(lived: Console) -> None:
    words = [line.split("  ", 1)[1] for line in lived("events").out.splitlines()]
    told = [line.strip().partition("Z  ")[2] for line in words]
    door = lived("events", "--json").objects[2]["via"]
    person = lived("events", "--json").objects[0]["actor"]

    why = "ada holds T-1 (attempt 1) until 2026-02-09T12:05:00.000Z"
    assert told == [
        f'{person} (via cli --now)  T-1  created, ready: "One"',
        f'{person} (via cli --now)  T-2  created, backlog: "Two"',
        f"agent:ada (via {door})  T-1  claimed by ada: attempt 1, fence 1, lease 5m",
        f"agent:ben (via {door})  refused task.claim T-1: already_claimed, {why}",
        f"{person} (via cli --now)  T-2  backlog → ready (now)",
        f"agent:ada (via {door})  T-1  in-progress → review",
    ]


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_following_misses_nothing_and_doubles_nothing(lived: Console) -> None:
    pauses = 0

    def wait() -> bool:
        nonlocal pauses
        pauses += 1
        if pauses <= 3:
            lived.make(f"while waiting {pauses}", "--id", f"W-{pauses}")
            lived.ask("task", "log", "T-2", f"while waiting {pauses}")
        return pauses <= 3

    said = lived("events", "--follow", "--after", "5", "--json", wait=wait)

    assert said.code == 0
    assert [entry["position"] for entry in said.objects] == [6, 7, 8, 9, 10, 11, 12]


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_following_one_task_shows_only_that_task_and_ends_at_the_limit(lived: Console) -> None:
    def wait() -> bool:
        lived.ask("task", "log", "T-2", "more")
        lived.ask("task", "log", "T-1", "more")
        return True

    said = lived("events", "-f", "--task", "T-1", "--limit", "5", "--json", wait=wait)

    assert [entry["stream"] for entry in said.objects] == ["task:T-1"] * 5


@proves("CLI-EVENTS")
def test_what_is_told_of_a_task_elsewhere_is_not_its_history_and_the_help_says_so(
    lived: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 4 not in positions(lived, "--task", "T-1"), "the refusal is in the stream of ben"
    assert positions(lived, "--type", "command") == [4]
    lived("events", "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "Only its own history; not what other streams tell of it." in said
    assert "--task shows none of them" in said


@proves("CLI-EVENTS")
def test_an_empty_ledger_prints_nothing(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("events").out == ""


@proves("CLI-EVENTS")
def test_every_event_name_can_be_asked_for(lived: Console) -> None:
    for name in EVENT_NAMES.values():
        assert lived("events", "--type", name).code == 0, name


@proves("LOST-CURSOR")
def test_who_follows_from_beyond_the_end_is_told_and_sees_what_comes(lived: Console) -> None:
    deeds = [
        lambda: lived.make("Three", "--id", "T-3"),
        lambda: lived.ask("task", "log", "T-3", "x"),
    ]

    def wait() -> bool:
        return bool(deeds and deeds.pop(0)())

    said = lived("events", "--follow", "--after", "9", "--json", wait=wait)

    assert [entry["position"] for entry in said.objects] == [7, 8]
    assert said.err.count("the ledger ends at 6, before 9") == 1
    assert lived("events", "--follow", "--after", "8").err == "", "level is not beyond"


@proves("LOST-CURSOR")
@pytest.mark.parametrize(
    "words", [("events",), ("events", "--task", "T-1"), ("watch", "T-1"), ("events", "--follow")]
)
def test_a_position_beyond_the_end_is_told_by_all_who_read_the_ledger(
    lived: Console, words: tuple[str, ...]
) -> None:
    said = lived(*words, "--after", "9999")

    assert (said.code, said.out) == (0, "")
    assert "the ledger ends at 6, before 9999: it may have been restored" in said.err
