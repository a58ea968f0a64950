"""`POST /v1/ledger/verify`: every hash, version and position of the ledger, checked anew."""

from collections.abc import Generator
from itertools import islice

from msgspec import Struct

from dragoman.core.authority import MAY_PAUSE
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.ports import Store
from dragoman.engine.verify import Finding, check_ledger
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint

_MAX_FINDINGS = 100


class LedgerProof(Struct, frozen=True, rename="camel"):
    """Result of a check of the ledger alone; `dragoman verify` also compares it with signed
    checkpoints, with the views and with the files."""

    entries: int
    streams: int
    findings: tuple[str, ...]
    """The first differences; empty: nothing was lost or changed."""
    duration_ms: int


async def verify_ledger(call: Call) -> LedgerProof:
    """Check every hash, version and position of the ledger; one check runs at a time."""
    check_may_verify(call)
    monotonic = call.context.deps.monotonic
    async with call.context.verify_lock:
        started_at = monotonic()
        entries, streams, findings = await call.context.read(_check)
        return LedgerProof(entries, streams, findings, round((monotonic() - started_at) * 1_000))


def check_may_verify(call: Call) -> None:
    """Refuse those for whom the hub does not read the whole ledger."""
    actor = call.principal.actor
    if actor.role not in MAY_PAUSE:
        raise Refused(
            Refusal("not_authorized", f"{actor.label} may not verify: it costs a whole reading")
        )


def _check(store: Store) -> tuple[int, int, tuple[str, ...]]:
    """Check the ledger: number of entries and streams, and the first findings."""
    entries, streams = 0, 0

    def count_entries(checked: int) -> None:
        nonlocal entries
        entries += checked

    def findings() -> Generator[Finding]:
        nonlocal streams
        streams = yield from check_ledger(store, (), count_entries)

    first = tuple(map(_describe, islice(findings(), _MAX_FINDINGS)))
    return entries, streams, first


def _describe(finding: Finding) -> str:
    place = f"entry {finding.position}: " if finding.position else ""
    return f"{place}{finding.problem}"


ENDPOINTS = (Endpoint("POST", "/v1/ledger/verify", verify_ledger, LedgerProof, body=Body),)
