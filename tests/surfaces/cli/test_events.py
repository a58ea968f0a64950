"""`events`: the ledger from any position, filtered by task and type, and followed."""

import pytest

from dragoman.core.event_table import EVENT_NAMES
from tests.requirements import proves
from tests.surfaces.cli.console import NOON, Console


@pytest.fixture
def populated(dragoman: Console) -> Console:
    """Give a ledger of six entries about two tasks, one of them a refusal."""
    dragoman.make("One", "--id", "T-1", "--ready", "--now", NOON)
    dragoman.make("Two", "--id", "T-2", "--alias", "bead:b-2", "--now", NOON)
    dragoman.ask("task", "claim", "--agent", "ada", "--now", NOON)
    dragoman.ask("task", "claim", "T-1", "--agent", "ben", "--now", NOON, code=1)
    dragoman.ask("task", "move", "b-2", "ready", "--reason", "now", "--now", NOON)
    dragoman.ask("task", "move", "T-1", "review", "--as", "ada", "--now", NOON)
    return dragoman


def positions(dragoman: Console, *args: str) -> list[int]:
    return [entry["position"] for entry in dragoman("events", *args, "--json").objects]


@proves("CLI-EVENTS", "LEDGER-POSITION")
def test_each_json_line_is_an_entry(populated: Console) -> None:
    entries = populated("events", "--json").objects

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
def test_options_filter_the_ledger(populated: Console) -> None:
    assert positions(populated, "--after", "4") == [5, 6]
    assert positions(populated, "--after", "-2") == [5, 6]
    assert positions(populated, "--after", "-100") == [1, 2, 3, 4, 5, 6]
    assert positions(populated, "--after", "99") == []
    assert positions(populated, "--limit", "2") == [1, 2]
    assert positions(populated, "--task", "T-1") == [1, 3, 6]
    assert positions(populated, "--task", "b-2", "--after", "2") == [5]
    assert positions(populated, "--type", "task.created") == [1, 2]
    assert positions(populated, "--type", "command") == [4]
    assert positions(populated, "--task", "T-1", "--type", "task.transitioned", "--limit", "9") == [
        6
    ]
    assert populated.ask("events", "--task", "T-9", code=1)["code"] == "task_not_found"


@proves("CLI-EVENTS", "REFUSAL-RECORDED")
def test_line_shows_position_time_actor_task_and_event(populated: Console) -> None:
    lines = [line.split("  ", 1)[1] for line in populated("events").out.splitlines()]
    texts = [line.strip().partition("Z  ")[2] for line in lines]
    via = populated("events", "--json").objects[2]["via"]
    person = populated("events", "--json").objects[0]["actor"]

    detail = "ada holds T-1 (attempt 1) until 2026-02-09T12:05:00.000Z"
    assert texts == [
        f'{person} (via cli --now)  T-1  created, ready: "One"',
        f'{person} (via cli --now)  T-2  created, backlog: "Two"',
        f"agent:ada (via {via})  T-1  claimed by ada: attempt 1, fence 1, lease 5m",
        f"agent:ben (via {via})  refused task.claim T-1: already_claimed, {detail}",
        f"{person} (via cli --now)  T-2  backlog → ready (now)",
        f"agent:ada (via {via})  T-1  in-progress → review",
    ]


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_follow_shows_every_entry_once(populated: Console) -> None:
    pauses = 0

    def wait() -> bool:
        nonlocal pauses
        pauses += 1
        if pauses <= 3:
            populated.make(f"while waiting {pauses}", "--id", f"W-{pauses}")
            populated.ask("task", "log", "T-2", f"while waiting {pauses}")
        return pauses <= 3

    result = populated("events", "--follow", "--after", "5", "--json", wait=wait)

    assert result.code == 0
    assert [entry["position"] for entry in result.objects] == [6, 7, 8, 9, 10, 11, 12]


@proves("CLI-EVENTS", "ENGINE-SUBSCRIBE")
def test_follow_of_one_task_ends_at_the_limit(populated: Console) -> None:
    def wait() -> bool:
        populated.ask("task", "log", "T-2", "more")
        populated.ask("task", "log", "T-1", "more")
        return True

    result = populated("events", "-f", "--task", "T-1", "--limit", "5", "--json", wait=wait)

    assert [entry["stream"] for entry in result.objects] == ["task:T-1"] * 5


@proves("CLI-EVENTS")
def test_task_filter_excludes_entries_of_other_streams(
    populated: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 4 not in positions(populated, "--task", "T-1"), "the refusal is in the stream of ben"
    assert positions(populated, "--type", "command") == [4]
    populated("events", "--help")
    help_text = " ".join(capsys.readouterr().out.split())
    assert "Only its own history, without entries of other streams about it." in help_text
    assert "--task shows none of them" in help_text


@proves("CLI-EVENTS")
def test_empty_ledger_prints_nothing(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("events").out == ""


@proves("CLI-EVENTS")
def test_every_event_name_is_a_valid_type(populated: Console) -> None:
    for name in EVENT_NAMES.values():
        assert populated("events", "--type", name).code == 0, name


@proves("LOST-CURSOR")
def test_follow_from_beyond_the_end_warns_and_shows_new_entries(populated: Console) -> None:
    steps = [
        lambda: populated.make("Three", "--id", "T-3"),
        lambda: populated.ask("task", "log", "T-3", "x"),
    ]

    def wait() -> bool:
        return bool(steps and steps.pop(0)())

    result = populated("events", "--follow", "--after", "9", "--json", wait=wait)

    assert [entry["position"] for entry in result.objects] == [7, 8]
    assert result.err.count("the ledger ends at 6, before 9") == 1
    assert populated("events", "--follow", "--after", "8").err == "", "level is not beyond"


@proves("LOST-CURSOR")
@pytest.mark.parametrize(
    "args", [("events",), ("events", "--task", "T-1"), ("watch", "T-1"), ("events", "--follow")]
)
def test_position_beyond_the_end_is_a_warning_of_every_reader(
    populated: Console, args: tuple[str, ...]
) -> None:
    result = populated(*args, "--after", "9999")

    assert (result.code, result.out) == (0, "")
    assert "the ledger ends at 6, before 9999: it may have been restored" in result.err
