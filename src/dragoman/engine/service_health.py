"""Health of a background service: what keeps it from all of its work, or from a part."""

from msgspec import Struct

from dragoman.core.errors import CheckpointsMissing, DragomanError, StoreError
from dragoman.text.error_messages import describe_exception


class HealthProblem(Struct, frozen=True):
    """The problem of a background service."""

    message: str = ""
    """The message; empty: no problem."""
    is_partial: bool = False
    """True if only a part of its work is not done, so that the hub is usable all the same."""
    is_store_failure: bool = False
    """True if it is the store's problem, and so that of every service."""


HEALTHY = HealthProblem()


def problem_from_error(error: DragomanError | OSError) -> HealthProblem:
    """The health problem that an error stands for."""
    return HealthProblem(
        describe_exception(error),
        is_partial=isinstance(error, CheckpointsMissing),
        is_store_failure=isinstance(error, StoreError),
    )
