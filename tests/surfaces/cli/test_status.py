"""`dragoman status`: one screen with who works, what waits, and what needs a person."""

import shlex
from collections.abc import Callable

from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("SEE-STATUS")


def polls(*deeds: Callable[[], object]) -> Callable[[], bool]:
    """Return a pause that does one deed after the other, and then ends the polling."""
    waiting = iter(deeds)

    def wait() -> bool:
        deed = next(waiting, None)
        if deed is not None:
            deed()
        return deed is not None

    return wait


def make_fleet(dragoman: Console) -> None:
    """Make a task in each situation."""
    for name in ("held", "asked", "seen"):
        dragoman.make(f"The {name} one", "--id", name, "--ready")
        dragoman.ask("task", "claim", name, "--agent", "ada")
    dragoman.ask("task", "move", "asked", "blocked", "--reason", "Which key?", "--as", "ada")
    dragoman.ask("task", "move", "seen", "review", "--as", "ada")
    dragoman.make("The next one", "--id", "next", "--ready", "--blocked-by", "held")
    dragoman.make("Nobody's", "--id", "lost", "--ready", "--assignee", "bbo")
    dragoman.ask("agent", "add", "bob", "--no-token")
    dragoman.ask("task", "log", "held", "hello", "--as", "bob")


def test_status_of_an_empty_hub_says_what_to_do(dragoman: Console) -> None:
    dragoman("init")

    assert dragoman("status").out.splitlines() == [
        "no tasks yet: `dragoman task create TITLE --ready` makes one",
        "nothing needs you",
    ]


@proves("USAGE-LIMIT")
def test_status_says_until_when_an_agent_is_paused(dragoman: Console) -> None:
    dragoman.make("One", "--id", "one", "--ready")
    dragoman.ask("task", "claim", "one", "--agent", "ada")
    ended = ("--until", "2098-12-31T23:59:00Z", "--reason", "You've hit your limit")
    dragoman.ask("task", "limit", "one", "--agent", "ada", *ended)

    until = "ada is paused until 2099-01-01T00:00:00.000Z while 1 ready task waits"
    assert until in dragoman("status").out
    dragoman.ask("task", "move", "one", "backlog")
    shown = dragoman("status").out
    assert "nothing needs you" in shown
    assert "ada (1s ago, paused until 2099-01-01T00:00:00.000Z: usage limit of ada" in shown


def test_status_is_one_screen(dragoman: Console) -> None:
    make_fleet(dragoman)

    lines = dragoman("status", "--now", "2099-01-01T00:00:00Z").out.splitlines()

    data = f" --data {dragoman.data}"
    assert lines[0] == (
        "1 in-progress, 2 ready (0 for anybody, 1 for one agent), 1 review, 1 blocked"
    )
    assert lines[2] == "NEEDS YOU (3)"
    assert [line.split()[0] for line in lines[3:7]] == ["WHAT", "question", "review", "unknown"]
    assert f'dragoman task answer asked "…"{data}' in lines[4]
    assert lines[4].endswith("blocked: Which key?")
    assert f"dragoman task approve seen{data}" in lines[5]
    assert f"dragoman task assign lost NAME{data}" in lines[6]
    assert lines[8] == "WORKING (1)"
    assert lines[10].split()[:3] == ["ada", "held", "1"]
    assert "over" in lines[10]
    assert lines[12] == "WAITING (2)"
    assert lines[14].split()[0] == "lost"
    assert "reserved for bbo" in lines[14]
    waiting, _, who, *why = lines[15].split()
    assert (waiting, who, " ".join(why)) == ("next", "ada", "waits for held The next one")


def test_each_suggested_command_deals_with_what_it_stands_with(dragoman: Console) -> None:
    make_fleet(dragoman)
    dragoman.ask("task", "ask", "held", "UTC?", "--agent", "ada")
    dragoman.ask("task", "ask", "held", "Now?", "--agent", "ada")
    dragoman.make("Given up", "--id", "dead", "--ready")
    dragoman.ask("task", "move", "dead", "deadletter")
    dragoman.make("For carl", "--id", "carls", "--ready", "--assignee", "carl")
    dragoman.ask("agent", "add", "carl", "--no-token")
    dragoman.ask("agent", "pause", "carl", "--reason", "over budget")
    kinds = set[str]()

    while items := dragoman.ask("status")["attention"]:
        item = items[0]
        _, *words = shlex.split(item["command"])
        result = dragoman(*({"…": "Yes.", "NAME": "bob"}.get(word, word) for word in words))
        assert result.code == 0, (item, result)
        assert item not in dragoman.ask("status")["attention"]
        kinds.add(item["kind"])

    assert kinds == {"question", "review", "paused", "deadletter", "unknown_assignee"}


def test_idle_agents_are_named_on_one_line(dragoman: Console) -> None:
    make_fleet(dragoman)
    dragoman.ask("agent", "pause", "bob", "--reason", "too dear")
    dragoman.ask("task", "log", "held", "hello", "--as", "eve")

    *_, last = dragoman("status").out.splitlines()

    assert last.startswith("2 idle agents: bob (")
    assert "ago, paused: too dear), eve (" in last
    assert last.endswith("ago, not registered)")


def test_long_lists_are_cut_and_name_the_command_for_the_rest(dragoman: Console) -> None:
    dragoman.make("first", "--id", "first", "--ready")
    for number in range(15):
        dragoman.make("t", "--id", f"w{number}", "--ready", "--blocked-by", "first")
        dragoman.make("t", "--id", f"b{number}", "--ready")
        dragoman.ask("task", "move", f"b{number}", "blocked", "--reason", "why?")
    for number in range(26):
        dragoman.make("t", "--id", f"h{number}", "--ready")
        dragoman.ask("task", "claim", f"h{number}", "--agent", "ada")

    lines = dragoman("status").out.splitlines()

    assert "… and 3 more of question: dragoman task list --status blocked" in lines
    assert "… and 2 more: dragoman task list --status in-progress" in lines
    assert "… and 7 more: dragoman task list --status ready" in lines
    assert len(lines) <= 60


def test_status_in_json_has_everything(dragoman: Console) -> None:
    make_fleet(dragoman)

    shown = dragoman.ask("status")

    assert shown["counts"] == {"in-progress": 1, "ready": 2, "review": 1, "blocked": 1}
    assert [item["kind"] for item in shown["attention"]] == [
        "question",
        "review",
        "unknown_assignee",
    ]
    assert shown["attention"][0]["command"] == 'dragoman task answer asked "…"'
    assert [agent["name"] for agent in shown["agents"]] == ["ada", "bob"]


def test_watch_shows_the_status_again_when_it_changes(dragoman: Console) -> None:
    dragoman.make("t", "--id", "t", "--ready")

    result = dragoman(
        "status",
        "--watch",
        "--json",
        wait=polls(
            lambda: None,
            lambda: dragoman.ask("task", "claim", "t", "--agent", "ada"),
            lambda: None,
            lambda: None,
        ),
    )

    assert result.code == 0
    assert [shown["counts"] for shown in result.objects] == [{"ready": 1}, {"in-progress": 1}]


def test_watch_notices_heartbeats_which_add_no_entry(dragoman: Console) -> None:
    dragoman.make("t", "--id", "t", "--ready")
    dragoman.ask("task", "claim", "t", "--agent", "ada")

    result = dragoman(
        "status",
        "--watch",
        "--json",
        wait=polls(
            lambda: dragoman.ask("task", "heartbeat", "t", "--agent", "ada"),
            *[lambda: None] * 5,
        ),
    )

    first, second = (shown["working"][0] for shown in result.objects)
    assert first["lastSign"] < second["lastSign"]
    assert first["lastProgress"] == second["lastProgress"]


def test_watch_redraws_a_terminal(dragoman: Console) -> None:
    dragoman.make("t", "--id", "t", "--ready")

    shown = dragoman.on_terminal("status", "--watch").out

    assert shown.startswith("\x1b[H\x1b[2J")
    assert "1 ready" in shown
