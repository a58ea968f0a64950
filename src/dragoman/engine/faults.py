"""Why a message is not carried out, and the checks of a shape that say so."""

from typing import Any

import msgspec
from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import StrictJsonError


class Fault(Struct, frozen=True):
    """The reason why a message is not accepted: one of our refusal codes, and the field that is
    wrong."""

    code: str
    reason: str
    path: str = ""
    is_sentence: bool = False
    """True if the reason names its subject itself, so that the path is not put before it."""

    @property
    def detail(self) -> str:
        """The sentence for a person."""
        return self.reason if self.is_sentence or not self.path else f"{self.path}: {self.reason}"


def fault_from_refusal(refusal: Refusal, path: str = "") -> Fault:
    """The fault that a refusal of the core stands for, perhaps of one field."""
    return Fault(refusal.code, refusal.detail, path, is_sentence=True)


def validate_shape(value: Any, shape: Any, code: str = "invalid_field") -> Any:
    """Convert a parsed JSON value to its shape, or return the fault of it."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        fault = shape_fault(error, shape)
        return Fault(code, fault.reason, fault.path)


def require_id(read: Any, field: str, kind: str) -> Any:
    """The parsed message, unless its id is empty: to have an id assigned, leave the field out."""
    if isinstance(read, Fault) or getattr(read, field) != "":
        return read
    malformed = check_id("", kind)
    assert malformed is not None, "an empty id is malformed"
    return fault_from_refusal(malformed, field)


def fault_from_json_error(error: StrictJsonError) -> Fault:
    """The fault of a message that is not valid JSON."""
    code = "message_too_large" if error.too_large else "invalid_json"
    return Fault(code, error.reason, error.path)
