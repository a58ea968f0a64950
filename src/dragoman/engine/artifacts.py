"""What a handoff needs from the outside to be verified: files that are looked at, and kept."""

from typing import Literal, Protocol

from msgspec import Struct

Trouble = Literal["missing", "different", "too_large", "passing"]


class Expected(Struct, frozen=True):
    """Expected properties of an artifact; one that is not given may be anything."""

    sha256: str = ""
    size: int | None = None


class Kept(Struct, frozen=True):
    """An artifact of which a verified copy is stored."""

    sha256: str
    size: int


class NotKept(Struct, frozen=True):
    """The reason why an artifact is not as expected; `passing`: a later try may succeed."""

    trouble: Trouble
    detail: str


class ArtifactStore(Protocol):
    """Store for copies of artifacts, under the hash of their content (S-ACP-8)."""

    def size(self, teamspace: str, path: str) -> int | NotKept:
        """Size in bytes of a file beneath the roots of a teamspace, without reading it."""
        ...

    def look(self, teamspace: str, path: str, expected: Expected) -> NotKept | None:
        """Check a file, which is read but not stored; None if it is as expected."""
        ...

    def take(self, teamspace: str, path: str, expected: Expected) -> Kept | NotKept:
        """Check a file beneath the roots of a teamspace, and store a copy of it."""
        ...

    def check(self, sha256: str) -> NotKept | None:
        """Check a stored copy; None if it is unchanged."""
        ...
