"""What a handoff needs from the outside to be verified: files that are looked at, and kept."""

from typing import Literal, Protocol

from msgspec import Struct

ArtifactProblem = Literal["missing", "different", "too_large", "passing"]


class ExpectedArtifact(Struct, frozen=True):
    """Expected properties of an artifact; one that is not given may be anything."""

    sha256: str = ""
    size: int | None = None


class StoredArtifact(Struct, frozen=True):
    """An artifact of which a verified copy is stored."""

    sha256: str
    size: int


class ArtifactMismatch(Struct, frozen=True):
    """The reason why an artifact is not as expected; `passing`: a later try may succeed."""

    problem: ArtifactProblem
    detail: str


class ArtifactStore(Protocol):
    """Store for copies of artifacts, under the hash of their content (S-ACP-8)."""

    def file_size(self, teamspace: str, path: str) -> int | ArtifactMismatch:
        """Size in bytes of a file beneath the roots of a teamspace, without reading it."""
        ...

    def verify_file(
        self, teamspace: str, path: str, expected: ExpectedArtifact
    ) -> ArtifactMismatch | None:
        """Check a file, which is read but not stored; None if it is as expected."""
        ...

    def store_file(
        self, teamspace: str, path: str, expected: ExpectedArtifact
    ) -> StoredArtifact | ArtifactMismatch:
        """Check a file beneath the roots of a teamspace, and store a copy of it."""
        ...

    def verify_copy(self, sha256: str) -> ArtifactMismatch | None:
        """Check a stored copy; None if it is unchanged."""
        ...
