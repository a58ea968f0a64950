"""Is this ACP? For developers of agents and their CI: every finding, with its place."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from dragoman.core.states.handoff import section
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.faults import Fault
from dragoman.engine.operation import Linted
from dragoman.protocols.acp.detect import HANDOFF, SEND, whose
from dragoman.protocols.acp.messages import read_message
from dragoman.protocols.acp.package import action_faults, offer_faults, package_faults
from dragoman.protocols.acp.read import read_action

PACKAGE: Final = "package"
OFFER: Final = "offer"
"""Arguments of `initiate`: a package before the hub has completed it, and its recipient."""
KINDS: Final = (PACKAGE, OFFER, HANDOFF, SEND)


def lint(value: Any, kind: str, strict: bool) -> Linted:
    """Lint a package, an offer, an action or a message.

    A package is sealed and must match its hash; an offer is not sealed yet and names a recipient.
    Strict makes no difference: the hub accepts nothing here that strict would refuse.
    """
    del strict
    found = whose(value) or _unnamed(value)
    faults = list(_faults(found, cast(Mapping[str, Any], value)))
    issues = [{"path": fault.path, "reason": fault.reason} for fault in faults]
    if kind and found != kind:
        issues.append({"path": "", "reason": f"this is {found or 'no object'}, not {kind}"})
    return Linted(not issues, found, value, tuple(issues))


def _unnamed(value: Any) -> str:
    """Kind of an object that does not state its kind."""
    if not isinstance(value, dict):
        return ""
    return OFFER if "to_agent" in value else PACKAGE


def _faults(kind: str, value: Mapping[str, Any]) -> Iterator[Fault]:
    if not kind:
        yield Fault("schema_invalid", "this is no JSON object")
    elif kind == PACKAGE:
        misshapen = list(package_faults(value))
        yield from misshapen or _hash(value)
    elif kind == OFFER:
        yield from offer_faults({**value, "action": "initiate"})
    elif kind == HANDOFF:
        read = read_action(value)
        if isinstance(read, Fault):
            yield from action_faults(value, read)
    else:
        read = read_message(value)
        if isinstance(read, Fault):
            yield read


def _hash(package: Mapping[str, Any]) -> Iterator[Fault]:
    stated = section(package, "verification").get("package_hash")
    try:
        actual = hash_of(package)
    except ValueError as error:
        yield Fault("schema_invalid", f"the package cannot be hashed: {error}")
        return
    if stated != actual:
        reason = f"the package has the hash {actual}"
        yield Fault("hash_mismatch", reason, "verification.package_hash")
