"""Lint ACP documents without sending them, for developers of agents and their CI."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.core.handoff.package import compute_package_hash
from dragoman.core.handoff.state import package_section
from dragoman.engine.operation import Fault, LintResult
from dragoman.protocols.acp.parse import (
    HANDOFF,
    SEND,
    detect_operation,
    package_faults,
    parse_action,
    parse_send,
)

PACKAGE: Final = "package"
OFFER: Final = "offer"
"""Arguments of `initiate`: a package before the hub has completed it, and its recipient."""
KINDS: Final = (PACKAGE, OFFER, HANDOFF, SEND)


def lint(value: Any, kind: str, _: bool) -> LintResult:
    """Lint a package, an offer, an action or a message.

    A package is sealed and must match its hash; an offer is not sealed yet and names a recipient.
    Of several faults of a shape the first one is listed, as a hub names it.
    Strict makes no difference: the hub accepts nothing here that strict would refuse.
    """
    detected = detect_operation(value) or _guess_kind(value)
    faults = list(_faults(detected, cast(Mapping[str, Any], value)))
    issues = [{"path": fault.path, "reason": fault.reason} for fault in faults]
    if kind and detected != kind:
        issues.append({"path": "", "reason": f"this is {detected or 'no object'}, not {kind}"})
    return LintResult(not issues, detected, value, tuple(issues))


def _guess_kind(value: Any) -> str:
    """Kind of an object that does not state its kind."""
    if not isinstance(value, dict):
        return ""
    return OFFER if "to_agent" in value else PACKAGE


def _faults(kind: str, value: Mapping[str, Any]) -> Iterator[Fault]:
    if not kind:
        yield Fault("schema_invalid", "this is no JSON object")
    elif kind == PACKAGE:
        misshapen = list(package_faults(value))
        yield from misshapen or _hash_faults(value)
    else:
        offered = {"action": "initiate"} if kind == OFFER else {}
        read = parse_send(value) if kind == SEND else parse_action({**value, **offered})
        if isinstance(read, Fault):
            yield read


def _hash_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    stated = package_section(package, "verification").get("package_hash")
    try:
        actual = compute_package_hash(package)
    except ValueError as error:
        yield Fault("schema_invalid", f"the package cannot be hashed: {error}")
        return
    if stated != actual:
        reason = f"the package has the hash {actual}"
        yield Fault("hash_mismatch", reason, "verification.package_hash")
