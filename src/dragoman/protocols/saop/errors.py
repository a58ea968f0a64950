"""Validation issues of SAOP messages."""

from msgspec import Struct


class Issue(Struct, frozen=True):
    """A fault and its path, such as `metadata.confidence`; an empty path is the whole message."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


class SaopError(ValueError):
    """A message does not fit its schema; `issues` names every place."""

    def __init__(self, issues: tuple[Issue, ...]) -> None:
        super().__init__("; ".join(map(str, issues)))
        self.issues = issues
