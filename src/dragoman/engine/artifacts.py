"""What a handoff needs from the outside to be verified: files that are looked at, and kept."""

from typing import Literal, Protocol

from msgspec import Struct

Trouble = Literal["missing", "different", "too_large", "passing"]


class Expected(Struct, frozen=True):
    """What an artifact must be like; what is not given may be anything."""

    sha256: str = ""
    size: int | None = None


class Kept(Struct, frozen=True):
    """An artifact whose verified copy is kept."""

    sha256: str
    size: int


class NotKept(Struct, frozen=True):
    """Why an artifact is not as it has to be; `passing`: that may be otherwise later."""

    trouble: Trouble
    detail: str


class ArtifactStore(Protocol):
    """Keeps copies of artifacts under the hash of their content (S-ACP-8)."""

    def size(self, teamspace: str, path: str) -> int | NotKept:
        """How many bytes a file beneath the roots of a teamspace has, without reading it."""
        ...

    def look(self, teamspace: str, path: str, expected: Expected) -> NotKept | None:
        """What is wrong with a file, which is read but not kept; None when it is as expected."""
        ...

    def take(self, teamspace: str, path: str, expected: Expected) -> Kept | NotKept:
        """Look at a file beneath the roots of a teamspace, and keep a copy of it."""
        ...

    def check(self, sha256: str) -> NotKept | None:
        """What is wrong with a kept copy; None when it is what it was."""
        ...
