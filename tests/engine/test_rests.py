"""What is expected to be held back of a text: a guess that may be forgotten, and costs no text."""

from collections.abc import Sequence
from itertools import count

from dragoman.core.commands import CreateTask
from dragoman.engine.rests import Batch, Left, Recorded, Rest, Shelf
from tests.requirements import proves

pytestmark = proves("SAOP-MASKED")

MOST = 1_024


class Keeper:
    """Keeps rests, and remembers what it was handed."""

    def __init__(self) -> None:
        self.there: dict[str, str] = {}
        self.put_in: list[Sequence[Left]] = []

    def get(self, key: str, is_recorded: Recorded) -> str:
        del is_recorded
        return self.there.get(key, "")

    def put(self, left: Sequence[Left]) -> None:
        self.put_in.append(left)

    def settle(self, left: Sequence[Left]) -> None:
        self.there.update((one.key, one.after) for one in left)


def part(shelf: Shelf, key: str, text: str, event: str = "e", before: str = "") -> Rest:
    """A part of a text of which the last word is held back."""
    after = (before + text).rpartition(" ")[2]

    def again(instead: str) -> Rest:
        return part(shelf, key, text, event, instead)

    commands = (CreateTask(title=before + text),)
    return Rest(shelf, key, event, text, before, after, commands, again)


def test_what_is_expected_is_bounded_and_the_oldest_is_forgotten() -> None:
    shelf = Shelf(Keeper())
    for number in range(MOST + 1):
        shelf.expect(part(shelf, f"k-{number}", "half"))
    assert (shelf.expected("k-0"), shelf.expected("k-1")) == ("", "half")
    shelf.expect(part(shelf, "k-1", "an end "))
    assert shelf.expected("k-1") == ""


def test_what_leaves_nothing_is_expected_no_more_and_what_came_after_it_is() -> None:
    shelf = Shelf(Keeper())
    first, second = part(shelf, "k", "one", "e-1"), part(shelf, "k", "two", "e-2")
    shelf.expect(first)
    shelf.expect(second)
    shelf.expect_no_more(first)
    assert shelf.expected("k") == "two"
    shelf.expect_no_more(second)
    assert shelf.expected("k") == ""


def test_a_part_that_goes_on_with_something_else_is_looked_through_anew() -> None:
    keeper = Keeper()
    keeper.there["k"] = "ha"
    shelf, batch, numbers = Shelf(keeper), Batch(lambda _: True), count(1)
    for text in ("lf a ", "thou", "ght"):
        rest = batch.level(part(shelf, "k", text, f"e-{next(numbers)}"))
        batch.leave(rest)
    assert [type(one) for one in rest.commands] == [CreateTask]
    assert (rest.before, rest.after) == ("thou", "thought")
    assert shelf.expected("k") == "thought"
    batch.keep()
    assert keeper.put_in == [(Left("k", "e-3", "ha", "thought"),)], "all of the batch, or none"
    batch.settle()
    assert keeper.there == {"k": "thought"}


def test_where_nothing_is_held_back_nothing_is_kept() -> None:
    keeper = Keeper()
    shelf, batch = Shelf(keeper), Batch(lambda _: True)
    batch.leave(batch.level(part(shelf, "k", "a whole thought ")))
    batch.keep()
    assert keeper.put_in == []
