"""An id of what is made: said, or given by the hub, and never empty."""

import pytest
from msgspec import Struct

from dragoman.engine.faults import Fault, not_empty
from tests.requirements import proves


class Made(Struct, frozen=True):
    """Something with an id."""

    id: str | None = None


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize("read", [Made(), Made("a"), Fault("invalid_field", "no")], ids=repr)
def test_an_id_that_is_said_or_not_is_left_to_others(read: Made | Fault) -> None:
    assert not_empty(read, "id", "id") is read


@proves("NAME-GRAMMAR")
def test_an_empty_id_is_refused_like_every_other_bad_one() -> None:
    fault = not_empty(Made(""), "id", "letter id")

    assert (fault.code, fault.path) == ("invalid_id", "id")
    assert "'' is not a valid letter id" in fault.detail
