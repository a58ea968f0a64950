"""Required ids of new resources: given, absent, or refused if empty."""

import pytest
from msgspec import Struct

from dragoman.engine.operation import Fault, require_id
from tests.requirements import proves


class Resource(Struct, frozen=True):
    """Resource with an id."""

    id: str | None = None


@proves("NAME-GRAMMAR")
@pytest.mark.parametrize(
    "shape", [Resource(), Resource("a"), Fault("invalid_field", "no")], ids=repr
)
def test_present_or_absent_id_is_passed_through(shape: Resource | Fault) -> None:
    assert require_id(shape, "id", "id") is shape


@proves("NAME-GRAMMAR")
def test_empty_id_is_refused_as_invalid() -> None:
    fault = require_id(Resource(""), "id", "letter id")

    assert (fault.code, fault.path) == ("invalid_id", "id")
    assert "'' is not a valid letter id" in fault.detail
