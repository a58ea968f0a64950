"""A database that is gone: nothing is made in its place, and everybody says how it comes back."""

import pytest

from tests.requirements import proves
from tests.surfaces.cli.console import Console


@proves("STORE-LOST")
@pytest.mark.parametrize("words", [("init",), ("task", "create", "one"), ("task", "list")], ids=str)
def test_a_database_that_is_gone_is_not_made_anew(
    dragoman: Console, words: tuple[str, ...]
) -> None:
    dragoman.ask("task", "create", "one")
    dragoman.ask("tick")
    database = dragoman.data / "dragoman.db"
    assert (dragoman.data / "checkpoints.jsonl").exists()
    for file in dragoman.data.glob("dragoman.db*"):
        file.unlink()
    told = dragoman.ask(*words, code=1)
    assert told["code"] == "store_unavailable"
    assert "dragoman restore FILE --data NEW" in told["detail"]
    assert not database.exists()
