"""The gate of `accept`: schema, policy, artifacts, ownership cycle, package hash, in this order.

A failure is definite: the hub rejects the handoff for it. A transient problem, such as a disk that
cannot be read just now, leaves the handoff where it is, to be accepted again (S-ACP-3).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from msgspec import Struct

from dragoman.core.handoff.ownership import check_ownership_cycle
from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.state import GateFailure, Handoff, RejectReason, package_section
from dragoman.engine.ports import (
    ArtifactMismatch,
    ArtifactProblem,
    ArtifactStore,
    ExpectedArtifact,
    StoredArtifact,
)
from dragoman.protocols.acp.parse import package_faults, parse_shape
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.wire import Artifact, Artifacts

_REJECT_REASONS: Final[Mapping[ArtifactProblem, RejectReason]] = {
    "missing": "missing_artifact",
    "different": "hash_mismatch",
    "too_large": "policy_violation",
}
"""Trouble with an artifact -> reason of the rejection."""

_REASON_ORDER: Final[Sequence[RejectReason]] = (
    "missing_artifact",
    "policy_violation",
    "hash_mismatch",
)
"""Order of reasons: the first one found is the reason of the rejection (section 4.1)."""

TRANSIENT: Final = "passing"
"""Trouble that may be gone at the next check."""

NO_ARTIFACT_STORE: Final = "artifacts cannot be looked at here: there is no place to keep them"


class GateResult(Struct, frozen=True):
    """Result of the gate."""

    passed: tuple[str, ...] = ()
    failed: tuple[GateFailure, ...] = ()
    waits_for: str = ""
    artifacts: dict[str, str] = {}
    left_out: tuple[str, ...] = ()


class _Checks:
    """Collects the result of each check."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[GateFailure] = []

    def add(self, check: str, failures: Collection[GateFailure]) -> None:
        self.failed += failures
        if not failures:
            self.passed.append(check)


def run_gate(handoff: Handoff, leave_out: Collection[str], choices: Choices) -> GateResult:
    """Run all checks of a package; `leave_out`: artifacts that the recipient declines."""
    checks = _Checks()
    package: Mapping[str, Any] = handoff.package
    checks.add("schema", [("schema_invalid", fault.detail) for fault in package_faults(package)])
    checks.add("policy", list(policy_failures(package, choices)))
    findings = _inspect_artifacts(handoff, leave_out, choices)
    # Whether files exist comes before what they contain, whatever their order in the package.
    checks.add("artifacts", sorted(findings.failed, key=lambda one: _REASON_ORDER.index(one[0])))
    checks.add("cycle", list(_cycle_failures(handoff)))
    checks.add("package_hash", list(_hash_failures(handoff)))
    return GateResult(
        passed=tuple(checks.passed),
        failed=tuple(checks.failed),
        waits_for="; ".join(findings.waits_for),
        artifacts=findings.kept,
        left_out=tuple(findings.left_out),
    )


# --- checks of the package --------------------------------------------------------------------


def policy_failures(package: Mapping[str, Any], choices: Choices) -> Iterator[GateFailure]:
    """Values or secrets in a package that are not permitted here."""
    policy = package_section(package, "policy")
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
    # A hashed document cannot be masked: a package with a secret in it is rejected.
    secret = choices.find_secret(package)
    if secret is not None:
        yield "policy_violation", secret.detail


def _cycle_failures(handoff: Handoff) -> Iterator[GateFailure]:
    cycle = check_ownership_cycle(handoff.chain, handoff.recipient)
    if cycle is not None:
        yield "ownership_conflict", cycle.detail


def _hash_failures(handoff: Handoff) -> Iterator[GateFailure]:
    try:
        actual = compute_package_hash(handoff.package)
    except ValueError as error:
        yield "hash_mismatch", f"the package has no hash: {error}"
        return
    stated = package_section(handoff.package, "verification").get("package_hash")
    if actual != handoff.package_hash or stated != handoff.package_hash:
        yield "hash_mismatch", f"the package is not the one with the hash {handoff.package_hash}"


# --- checks of artifacts ----------------------------------------------------------------------


def missing_artifact(handoff: Handoff, artifacts: Artifacts, choices: Choices) -> str:
    """The required file among these artifacts that does not exist; empty: all do.

    What cannot be looked at for the moment counts as present.
    """
    store = choices.artifacts
    if store is None:
        return ""
    required = (one for one in artifacts if one.ref.type == "file" and one.ref.required)
    for artifact in required:
        found = store.file_size(handoff.teamspace, artifact.ref.path)
        if isinstance(found, ArtifactMismatch) and found.problem == "missing":
            return f"{artifact.artifact_id}: {found.detail}"
    return ""


def package_artifacts(handoff: Handoff) -> tuple[Artifact, ...]:
    """Artifacts of a package; none if they cannot be parsed."""
    artifacts = parse_shape(handoff.package.get("artifacts", []), Artifacts)
    return cast(tuple[Artifact, ...], artifacts) if isinstance(artifacts, tuple) else ()


def check_verified_copies(
    handoff: Handoff, store: ArtifactStore | None
) -> tuple[RejectReason | Literal["passing"], str] | None:
    """Check the verified copies that were made at acceptance (S-ACP-8); None: all are intact.

    A missing copy, as when another hub has made it, is made anew from the artifact, if that still
    has the verified hash.
    """
    if not handoff.artifacts:
        return None
    if store is None:
        return "missing_artifact", NO_ARTIFACT_STORE
    paths = {artifact.artifact_id: artifact.ref.path for artifact in package_artifacts(handoff)}
    for name, sha256 in handoff.artifacts.items():
        wrong = store.verify_copy(sha256)
        if wrong is not None and wrong.problem == "missing":
            file = store.store_file(handoff.teamspace, paths[name], ExpectedArtifact(sha256))
            wrong = _still_missing(wrong, file) if isinstance(file, ArtifactMismatch) else None
        if wrong is not None:
            return _REJECT_REASONS.get(wrong.problem, TRANSIENT), f"{name}: {wrong.detail}"
    return None


def _still_missing(copy: ArtifactMismatch, file: ArtifactMismatch) -> ArtifactMismatch:
    """Combine the missing copy with the trouble that kept it from being made from the file."""
    trouble = TRANSIENT if file.problem == TRANSIENT else copy.problem
    return ArtifactMismatch(trouble, f"{copy.detail}, and of the artifact itself: {file.detail}")


class _ArtifactFindings(Struct):
    """Findings about the artifacts of a package."""

    failed: list[GateFailure] = []
    waits_for: list[str] = []
    kept: dict[str, str] = {}
    left_out: list[str] = []


def _inspect_artifacts(
    handoff: Handoff, leave_out: Collection[str], choices: Choices
) -> _ArtifactFindings:
    findings, files = _ArtifactFindings(), list[Artifact]()
    for artifact in package_artifacts(handoff):
        if artifact.artifact_id in leave_out:
            findings.left_out.append(artifact.artifact_id)
        elif artifact.ref.type == "file":
            files.append(artifact)
    store = choices.artifacts
    if store is None:
        findings.waits_for += [f"{artifact.artifact_id}: {NO_ARTIFACT_STORE}" for artifact in files]
        return findings
    measured = _measure_files(files, handoff.teamspace, store, choices.max_package_bytes, findings)
    is_too_much = bool(findings.failed)
    results = dict[tuple[str, ExpectedArtifact], StoredArtifact | ArtifactMismatch]()
    for artifact, size in measured:
        if isinstance(size, ArtifactMismatch):
            _add_finding(artifact, size, findings)
        elif not is_too_much:
            # A file that several artifacts refer to is read once.
            expected = _expected(artifact)
            key = artifact.ref.path, expected
            if key not in results:
                results[key] = store.store_file(handoff.teamspace, artifact.ref.path, expected)
            _add_finding(artifact, results[key], findings)
    return findings


def _measure_files(
    files: Collection[Artifact],
    teamspace: str,
    store: ArtifactStore,
    limit: int,
    findings: _ArtifactFindings,
) -> list[tuple[Artifact, int | ArtifactMismatch]]:
    """Each file with its size; too many bytes in total are a failure of its own."""
    paths = dict.fromkeys(artifact.ref.path for artifact in files)
    sizes = {path: store.file_size(teamspace, path) for path in paths}
    found = [(artifact, sizes[artifact.ref.path]) for artifact in files]
    in_all = sum(size for _, size in found if isinstance(size, int))
    if in_all > limit:
        detail = f"all artifacts have {in_all} bytes, and at most {limit} are taken of one package"
        findings.failed.append(("policy_violation", detail))
    return found


def _expected(artifact: Artifact) -> ExpectedArtifact:
    ref = artifact.ref
    return ExpectedArtifact(
        ref.sha256 or "", ref.size_bytes if isinstance(ref.size_bytes, int) else None
    )


def _add_finding(
    artifact: Artifact, found: StoredArtifact | ArtifactMismatch, findings: _ArtifactFindings
) -> None:
    """Add the result of one artifact to the findings."""
    name = artifact.artifact_id
    if isinstance(found, StoredArtifact):
        findings.kept[name] = found.sha256
        return
    detail = f"{name}: {found.detail}"
    if found.problem == TRANSIENT:
        findings.waits_for.append(detail)
    elif found.problem == "missing" and not artifact.ref.required:
        findings.left_out.append(name)
    else:
        findings.failed.append((_REJECT_REASONS[found.problem], detail))
