"""The gate of `accept`: everything that is checked before work changes hands, in its order.

A failure is definite: the system rejects the handoff for it. What is passing (a disk that cannot be
read just now) leaves it where it is, to be tried again (S-ACP-3).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.core.commands import Failure
from dragoman.core.events import RejectReason
from dragoman.core.handoff import Handoff, section
from dragoman.core.handoff_package import hash_of
from dragoman.engine.artifacts import ArtifactStore, Expected, Kept, Trouble
from dragoman.protocols.acp.package import package_faults
from dragoman.protocols.acp.read import shaped
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.wire import Artifact, Artifacts

_REASON: Final[Mapping[Trouble, RejectReason]] = {
    "missing": "missing_artifact",
    "different": "hash_mismatch",
    "too_large": "policy_violation",
}
"""What is wrong with an artifact -> why the handoff is rejected for it."""

NO_STORE: Final = "artifacts cannot be looked at here: there is no place to keep them"


class Verdict(Struct, frozen=True):
    """What the gate has found."""

    passed: tuple[str, ...] = ()
    failed: tuple[Failure, ...] = ()
    waits_for: str = ""
    artifacts: dict[str, str] = {}
    left_out: tuple[str, ...] = ()


class _Findings:
    """What is found on the way, check by check."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[Failure] = []

    def add(self, check: str, failures: Collection[Failure]) -> None:
        """A check that was made, and what it found."""
        self.failed += failures
        if not failures:
            self.passed.append(check)


def examine(handoff: Handoff, leave_out: Collection[str], choices: Choices) -> Verdict:
    """All checks of a package; `leave_out`: artifacts that the recipient does not want."""
    found = _Findings()
    package: Mapping[str, Any] = handoff.package
    found.add("schema", [("schema_invalid", fault.detail) for fault in package_faults(package)])
    found.add("policy", list(policy_failures(section(package, "policy"), choices)))
    looked_at = _look(handoff, leave_out, choices)
    found.add("artifacts", looked_at.failed)
    found.add("cycle", list(_cycle(handoff)))
    found.add("package_hash", list(_hash(handoff)))
    return Verdict(
        passed=tuple(found.passed),
        failed=tuple(found.failed),
        waits_for="; ".join(looked_at.waits_for),
        artifacts=looked_at.kept,
        left_out=tuple(looked_at.left_out),
    )


def artifacts_of(handoff: Handoff) -> tuple[Artifact, ...]:
    """What goes along with a handoff; nothing, where that cannot be understood."""
    given = shaped(handoff.package.get("artifacts", []), Artifacts)
    return cast(tuple[Artifact, ...], given) if isinstance(given, tuple) else ()


def check_copies(handoff: Handoff, store: ArtifactStore | None) -> tuple[Failure, ...]:
    """What has happened to the verified copies since they were made (S-ACP-8)."""
    if not handoff.artifacts:
        return ()
    if store is None:
        return (("missing_artifact", NO_STORE),)
    found = ((name, store.check(sha256)) for name, sha256 in handoff.artifacts.items())
    return tuple(
        (_REASON.get(wrong.trouble, "missing_artifact"), f"{name}: {wrong.detail}")
        for name, wrong in found
        if wrong is not None
    )


def policy_failures(policy: Mapping[str, Any], choices: Choices) -> Iterator[Failure]:
    """What a policy says that is not permitted here."""
    permitted = (
        ("classification", choices.classifications),
        ("visibility", choices.visibilities),
        ("sensitivity", choices.sensitivities),
    )
    for field, values in permitted:
        value = policy.get(field)
        if isinstance(value, str) and value not in values:
            allowed = ", ".join(sorted(values)) or "nothing"
            yield "policy_violation", f"policy.{field}: {value!a} is not permitted here: {allowed}"


def _cycle(handoff: Handoff) -> Iterator[Failure]:
    if handoff.recipient in handoff.chain:
        way = " → ".join(handoff.chain)
        yield "ownership_conflict", f"{handoff.recipient} has owned it before ({way})"


def _hash(handoff: Handoff) -> Iterator[Failure]:
    try:
        actual = hash_of(handoff.package)
    except ValueError as error:
        yield "hash_mismatch", f"the package has no hash: {error}"
        return
    stated = section(handoff.package, "verification").get("package_hash")
    if actual != handoff.package_hash or stated != handoff.package_hash:
        yield "hash_mismatch", f"the package is not the one with the hash {handoff.package_hash}"


class _Looked(Struct):
    """What looking at the artifacts came to."""

    failed: list[Failure] = []
    waits_for: list[str] = []
    kept: dict[str, str] = {}
    left_out: list[str] = []


def _look(handoff: Handoff, leave_out: Collection[str], choices: Choices) -> _Looked:
    looked = _Looked()
    for artifact in artifacts_of(handoff):
        if artifact.artifact_id in leave_out:
            looked.left_out.append(artifact.artifact_id)
        elif artifact.ref.type == "file":
            _look_at(artifact, handoff.teamspace, choices.artifacts, looked)
    return looked


def _look_at(
    artifact: Artifact, teamspace: str, store: ArtifactStore | None, looked: _Looked
) -> None:
    name, ref = artifact.artifact_id, artifact.ref
    if store is None:
        looked.waits_for.append(f"{name}: {NO_STORE}")
        return
    size = ref.size_bytes if isinstance(ref.size_bytes, int) else None
    expected = Expected(ref.sha256 or "", size)
    found = store.take(teamspace, ref.path, expected)
    if isinstance(found, Kept):
        looked.kept[name] = found.sha256
        return
    detail = f"{name}: {found.detail}"
    if found.trouble == "passing":
        looked.waits_for.append(detail)
    elif found.trouble == "missing" and not ref.required:
        looked.left_out.append(name)
    else:
        looked.failed.append((_REASON[found.trouble], detail))
