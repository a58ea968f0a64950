"""Outage of the server: commands that follow go on when it is back."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.servers import MortalServer
from tests.surfaces.cli.console import Console


@proves("FOLLOW-AWAY")
@pytest.mark.parametrize(
    ("follow_command", "change"),
    [
        (("events", "--follow"), ("task", "log", "T-1", "told")),
        (("watch", "T-1"), ("task", "move", "T-1", "ready", "--reason", "told")),
        (
            ("mail", "inbox", "--as", "bob", "--watch"),
            ("mail", "send", "--to", "bob", "--subject", "told", "--body", "x"),
        ),
    ],
)
def test_follow_continues_after_server_outage(
    tmp_path: Path,
    server: MortalServer,
    url: str,
    follow_command: tuple[str, ...],
    change: tuple[str, ...],
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", url)
    dragoman.make("One", "--id", "T-1")
    steps = [server.kill, lambda: None, server.start, lambda: dragoman.ask(*change)]

    def wait() -> bool:
        if not steps:
            return False
        steps.pop(0)()
        return True

    result = dragoman(*follow_command, wait=wait)

    assert result.code == 0, result
    assert "told" in result.out
    assert result.err.count("Until it is back nothing is shown") == 1
