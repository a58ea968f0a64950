"""Why a message is not carried out, and the checks of a shape that say so."""

from typing import Any

import msgspec
from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import StrictJsonError


class Fault(Struct, frozen=True):
    """Why a message is not carried out: one of our refusal codes, and where in it what is wrong."""

    code: str
    reason: str
    path: str = ""
    is_whole: bool = False
    """Whether the reason says itself what it is about: whoever typed no field is told of none."""

    @property
    def detail(self) -> str:
        """The sentence for a person."""
        return self.reason if self.is_whole or not self.path else f"{self.path}: {self.reason}"


def fault_of(refusal: Refusal, path: str = "") -> Fault:
    """What the core says of a message, or of one field of it."""
    return Fault(refusal.code, refusal.detail, path, is_whole=True)


def in_shape(value: Any, shape: Any, code: str = "invalid_field") -> Any:
    """A parsed JSON value in its shape, or the fault of it."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        return Fault(code, fault.reason, fault.path)


def not_empty(read: Any, field: str, kind: str) -> Any:
    """What was read, unless it names what it makes by nothing: who wants an id given says none."""
    if isinstance(read, Fault) or getattr(read, field) != "":
        return read
    misnamed = check_id("", kind)
    assert misnamed is not None, "nothing is no id"
    return fault_of(misnamed, field)


def json_fault(error: StrictJsonError) -> Fault:
    """The fault of a message that is no JSON that can be trusted."""
    code = "message_too_large" if error.too_large else "invalid_json"
    return Fault(code, error.reason, error.path)
