"""The server is away for a while: whoever follows by the command line goes on when it is back."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.servers import MortalServer
from tests.surfaces.cli.console import Console


@proves("FOLLOW-AWAY")
@pytest.mark.parametrize(
    ("watching", "deed"),
    [
        (("events", "--follow"), ("task", "log", "T-1", "told")),
        (("watch", "T-1"), ("task", "move", "T-1", "ready", "--reason", "told")),
        (
            ("mail", "inbox", "--as", "bob", "--watch"),
            ("mail", "send", "--to", "bob", "--subject", "told", "--body", "x"),
        ),
        (("wave", "watch", "w1"), ("task", "claim", "a", "--agent", "told")),
    ],
)
def test_who_follows_outlives_a_server_that_is_killed_and_is_told_once(
    tmp_path: Path,
    server: MortalServer,
    url: str,
    watching: tuple[str, ...],
    deed: tuple[str, ...],
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", url)
    dragoman.make("One", "--id", "T-1")
    dragoman.ask("wave", "start", "a", "--parallel", "1", "--id", "w1")
    steps = [server.kill, lambda: None, server.start, lambda: dragoman.ask(*deed)]

    def wait() -> bool:
        if not steps:
            return False
        steps.pop(0)()
        return True

    said = dragoman(*watching, wait=wait)

    assert said.code == 0, said
    assert "told" in said.out
    assert said.err.count("Until it is back nothing is shown") == 1
