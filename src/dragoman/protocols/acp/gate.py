"""The gate of `accept`: everything that is checked before work changes hands, in its order.

A failure is definite: the system rejects the handoff for it. What is passing (a disk that cannot be
read just now) leaves it where it is, to be tried again (S-ACP-3).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

from msgspec import Struct

from dragoman.core.commands import Failure
from dragoman.core.events import RejectReason
from dragoman.core.rules.handoff_chain import check_cycle
from dragoman.core.states.handoff import Handoff, section
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.artifacts import ArtifactStore, Expected, Kept, NotKept, Trouble
from dragoman.protocols.acp.package import package_faults
from dragoman.protocols.acp.read import shaped
from dragoman.protocols.acp.settings import Choices
from dragoman.protocols.acp.wire import Artifact, Artifacts

_REASON: Final[Mapping[Trouble, RejectReason]] = {
    "missing": "missing_artifact",
    "different": "hash_mismatch",
    "too_large": "policy_violation",
}
"""Trouble with an artifact -> reason of the rejection."""

_ORDER: Final[Sequence[RejectReason]] = ("missing_artifact", "policy_violation", "hash_mismatch")
"""Order of reasons: the first one found is the reason of the rejection (section 4.1)."""

PASSING: Final = "passing"
"""Trouble that may be gone at the next check."""

NO_STORE: Final = "artifacts cannot be looked at here: there is no place to keep them"


class Verdict(Struct, frozen=True):
    """Result of the gate."""

    passed: tuple[str, ...] = ()
    failed: tuple[Failure, ...] = ()
    waits_for: str = ""
    artifacts: dict[str, str] = {}
    left_out: tuple[str, ...] = ()


class _Findings:
    """Collects the result of each check."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[Failure] = []

    def add(self, check: str, failures: Collection[Failure]) -> None:
        """Add a check and its failures."""
        self.failed += failures
        if not failures:
            self.passed.append(check)


def examine(handoff: Handoff, leave_out: Collection[str], choices: Choices) -> Verdict:
    """Run all checks of a package; `leave_out`: artifacts that the recipient declines."""
    found = _Findings()
    package: Mapping[str, Any] = handoff.package
    found.add("schema", [("schema_invalid", fault.detail) for fault in package_faults(package)])
    found.add("policy", list(policy_failures(package, choices)))
    looked_at = _look(handoff, leave_out, choices)
    # Whether files exist comes before what they contain, whatever their order in the package.
    found.add("artifacts", sorted(looked_at.failed, key=lambda one: _ORDER.index(one[0])))
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
    """Artifacts of a package; none if they cannot be parsed."""
    given = shaped(handoff.package.get("artifacts", []), Artifacts)
    return cast(tuple[Artifact, ...], given) if isinstance(given, tuple) else ()


def foreseen(artifacts: Collection[Artifact], teamspace: str, choices: Choices) -> list[str]:
    """Foresee failures of an offer's files, without reading them.

    The offer is not refused for them: the files may be there when it is accepted.
    """
    store, looked = choices.artifacts, _Looked()
    if store is None:
        return []
    files = [artifact for artifact in artifacts if artifact.ref.type == "file"]
    for artifact, size in _measured(files, teamspace, store, choices.artifacts_bytes, looked):
        if isinstance(size, NotKept):
            _add(artifact, size, looked)
        elif _expected(artifact).size not in (None, size):
            detail = f"{artifact.artifact_id}: it has {size} bytes, not as many as stated"
            looked.failed.append(("hash_mismatch", detail))
    return _told(looked)


def _told(looked: "_Looked") -> list[str]:
    """Format the failures and transient problems of files."""
    return [f"{code}: {detail}" for code, detail in looked.failed] + looked.waits_for


def wrong_with(artifacts: Collection[Artifact], teamspace: str, choices: Choices) -> list[str]:
    """Verify files as the gate would, without keeping copies; return what is wrong, in words."""
    store, looked = choices.artifacts, _Looked()
    if store is None:
        return []
    files = [artifact for artifact in artifacts if artifact.ref.type == "file"]
    measured = _measured(files, teamspace, store, choices.artifacts_bytes, looked)
    is_too_much = bool(looked.failed)
    for artifact, size in measured:
        wrong = size if isinstance(size, NotKept) else None
        expected = _expected(artifact)
        # If nothing is stated about a file, it need not be read.
        if wrong is None and not is_too_much and expected != Expected():
            wrong = store.look(teamspace, artifact.ref.path, expected)
        if wrong is not None:
            _add(artifact, wrong, looked)
    return _told(looked)


def check_copies(
    handoff: Handoff, store: ArtifactStore | None, *, remakes: bool = False
) -> tuple[RejectReason | Literal["passing"], str] | None:
    """Check the verified copies that were made at acceptance (S-ACP-8); None: all are intact.

    A missing copy, as when another hub has made it, counts as present while the artifact itself
    still has the verified hash; `recreate`: then the copy is made here too.
    """
    if not handoff.artifacts:
        return None
    if store is None:
        return "missing_artifact", NO_STORE
    paths = {artifact.artifact_id: artifact.ref.path for artifact in artifacts_of(handoff)}
    for name, sha256 in handoff.artifacts.items():
        wrong = store.check(sha256)
        if wrong is not None and wrong.trouble == "missing":
            use = store.take if remakes else store.look
            again = use(handoff.teamspace, paths[name], Expected(sha256))
            wrong = _still_missing(wrong, again) if isinstance(again, NotKept) else None
        if wrong is not None:
            return _REASON.get(wrong.trouble, PASSING), f"{name}: {wrong.detail}"
    return None


def _still_missing(copy: NotKept, file: NotKept) -> NotKept:
    """Combine the missing copy with the trouble that kept it from being made from the file."""
    trouble = PASSING if file.trouble == PASSING else copy.trouble
    return NotKept(trouble, f"{copy.detail}, and of the artifact itself: {file.detail}")


def policy_failures(package: Mapping[str, Any], choices: Choices) -> Iterator[Failure]:
    """Values or secrets in a package that are not permitted here."""
    policy = section(package, "policy")
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
    secret = choices.secret_in(package)
    if secret is not None:
        yield "policy_violation", secret.detail


def _cycle(handoff: Handoff) -> Iterator[Failure]:
    cycle = check_cycle(handoff.chain, handoff.recipient, goes_back=handoff.goes_back)
    if cycle is not None:
        yield "ownership_conflict", cycle.detail


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
    """Findings about the artifacts of a package."""

    failed: list[Failure] = []
    waits_for: list[str] = []
    kept: dict[str, str] = {}
    left_out: list[str] = []


def _look(handoff: Handoff, leave_out: Collection[str], choices: Choices) -> _Looked:
    looked, files = _Looked(), list[Artifact]()
    for artifact in artifacts_of(handoff):
        if artifact.artifact_id in leave_out:
            looked.left_out.append(artifact.artifact_id)
        elif artifact.ref.type == "file":
            files.append(artifact)
    store = choices.artifacts
    if store is None:
        looked.waits_for += [f"{artifact.artifact_id}: {NO_STORE}" for artifact in files]
        return looked
    measured = _measured(files, handoff.teamspace, store, choices.artifacts_bytes, looked)
    is_too_much = bool(looked.failed)
    taken = dict[tuple[str, Expected], Kept | NotKept]()
    for artifact, size in measured:
        if isinstance(size, NotKept):
            _add(artifact, size, looked)
        elif not is_too_much:
            # A file that several artifacts refer to is read once.
            expected = _expected(artifact)
            key = artifact.ref.path, expected
            if key not in taken:
                taken[key] = store.take(handoff.teamspace, artifact.ref.path, expected)
            _add(artifact, taken[key], looked)
    return looked


def _measured(
    files: Collection[Artifact], teamspace: str, store: ArtifactStore, most: int, looked: _Looked
) -> list[tuple[Artifact, int | NotKept]]:
    """Each file with its size; too many bytes in total are a failure of its own."""
    paths = dict.fromkeys(artifact.ref.path for artifact in files)
    sizes = {path: store.size(teamspace, path) for path in paths}
    found = [(artifact, sizes[artifact.ref.path]) for artifact in files]
    in_all = sum(size for _, size in found if isinstance(size, int))
    if in_all > most:
        detail = f"all artifacts have {in_all} bytes, and at most {most} are taken of one package"
        looked.failed.append(("policy_violation", detail))
    return found


def _expected(artifact: Artifact) -> Expected:
    ref = artifact.ref
    return Expected(ref.sha256 or "", ref.size_bytes if isinstance(ref.size_bytes, int) else None)


def _add(artifact: Artifact, found: Kept | NotKept, looked: _Looked) -> None:
    """Add the result of one artifact to the findings."""
    name = artifact.artifact_id
    if isinstance(found, Kept):
        looked.kept[name] = found.sha256
        return
    detail = f"{name}: {found.detail}"
    if found.trouble == PASSING:
        looked.waits_for.append(detail)
    elif found.trouble == "missing" and not artifact.ref.required:
        looked.left_out.append(name)
    else:
        looked.failed.append((_REASON[found.trouble], detail))
