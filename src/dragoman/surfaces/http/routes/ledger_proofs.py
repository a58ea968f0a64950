"""`GET /v1/ledger/checkpoints` and `GET /v1/ledger/proof`: what was signed, and that an entry is
part of it."""

import asyncio
from itertools import islice
from typing import Annotated

from msgspec import Meta, Struct

from dragoman.engine.inclusion import find_entry_hash, prove_inclusion
from dragoman.engine.ports import Store
from dragoman.ledger.checkpoint import SignedCheckpoint
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.parameters import Limit
from dragoman.surfaces.http.routes.ledger_verification import check_may_verify
from dragoman.system.checkpoint_file import CheckpointFile


class CheckpointsQuery(Query, frozen=True):
    """Number of checkpoints."""

    limit: Limit = 50


class CheckpointList(Struct, frozen=True):
    """The newest checkpoints whose signature holds, the newest first."""

    checkpoints: list[SignedCheckpoint]
    invalid: int
    """Lines among them that do not hold; `dragoman verify` names each."""


async def list_checkpoints(call: Call) -> CheckpointList:
    """List the newest signed checkpoints."""
    file = call.context.deps.checkpoints
    if file is None:
        return CheckpointList([], 0)
    return await asyncio.to_thread(_read_newest, file, call.query.limit)


def _read_newest(file: CheckpointFile, limit: int) -> CheckpointList:
    found = list(islice(file.newest(), limit))
    valid = [one for one in found if one is not None]
    return CheckpointList(valid, len(found) - len(valid))


class ProofQuery(Query, frozen=True):
    """Entry to prove."""

    position: Annotated[int, Meta(ge=1, le=2**53 - 1, description="Position of the entry.")]


class EntryProof(Struct, frozen=True):
    """Inclusion proof of an entry (RFC 9162), under the first checkpoint that signs it."""

    position: int
    hash: str
    checkpoint: SignedCheckpoint | None
    """null: none that holds signs it yet."""
    path: tuple[str, ...]
    """Hashes beside the way from the entry up to the root."""
    verified: bool
    """The entry has its hash, and the path leads from it to the root that was signed."""


async def prove_entry(call: Call) -> EntryProof:
    """Prove that an entry is among those that were signed; one proof is made at a time."""
    check_may_verify(call)
    async with call.context.verify_lock:
        return await call.context.read(_prove, call.context.deps.checkpoints, call.query.position)


def _prove(store: Store, file: CheckpointFile | None, position: int) -> EntryProof:
    entry_hash = find_entry_hash(store, position)
    if entry_hash is None:
        detail = f"there is no entry {position}: the ledger ends at {store.head()}"
        raise problem_error("not_found", detail, "position")
    checkpoint = file.find_checkpoint_of(position) if file else None
    if checkpoint is None:
        return EntryProof(position, entry_hash.hex(), None, (), verified=False)
    proof = prove_inclusion(store, position, checkpoint)
    path = tuple(node.hex() for node in proof.path)
    return EntryProof(position, entry_hash.hex(), checkpoint, path, verified=proof.is_verified)


ENDPOINTS = (
    Endpoint(
        "GET", "/v1/ledger/checkpoints", list_checkpoints, CheckpointList, query=CheckpointsQuery
    ),
    Endpoint("GET", "/v1/ledger/proof", prove_entry, EntryProof, query=ProofQuery),
)
