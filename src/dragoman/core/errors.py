"""Errors and refusals as one tree with stable codes.

Refusal (a value): the hub understood the request and refuses it; its codes are in REFUSALS.
DragomanError (an exception): the hub could not do its work; its codes are in FAULTS.
- Refused: a refusal, raised where a caller wants exceptions
- StoreError: the store did not answer as it must
  - StoreUnavailable: not reachable, not writable, full; nothing was changed
    - StoreLost: the connection broke during a commit; the engine finds out what became of it
  - StoreConflict: another writer was faster; the engine runs the request again
    - ActiveHandoffConflict: a second handoff of a task; a refusal, if every run ends in it
  - StoreCorrupt: the file is damaged or is not ours; nothing was written
- SettingsError: a setting cannot be understood
- LedgerError: an entry cannot be read or does not fit its chain
- BadCheckpoint (ledger), BadKey, BadRepository, HubRunning (system), BadFile, BadArchive,
  PlaceTaken (files), QuestionClosed, HubUnreachable, BadAnswer (client), NotDelivered (cli):
  defined there
"""

from msgspec import Struct
from msgspec.structs import replace

REFUSALS: dict[str, str] = {
    "invalid_id": "the name does not follow the grammar of ids",
    "invalid_field": "a field has a value that it cannot have",
    "task_not_found": "no task has this name",
    "ambiguous_name": "several tasks have this name; say which kind of name it is",
    "already_exists": "the name or id is taken",
    "invalid_transition": "the task cannot go from its status to that one",
    "claim_required": "a task enters in-progress only by a claim",
    "not_authorized": "the caller's role may not do this",
    "unauthorized_agent": "another agent holds or owns the task",
    "unassigned_task": "the task has neither holder nor assignee",
    "identity_mismatch": "the caller speaks for somebody else",
    "lease_lost": "the caller's lease has ended, or a newer attempt holds the task",
    "already_claimed": "another attempt holds the task",
    "not_ready": "the task is not in a status that can be claimed",
    "reserved_for_other": "the task is reserved for another agent, or is in a wave that runs",
    "files_reserved": "somebody else has reserved the files",
    "blocked_by_dependency": "the task waits for other tasks to end",
    "nothing_ready": "no task is ready for this agent",
    "link_cycle": "the link would lead from a task back to itself",
    "already_linked": "the task has a link of that kind that excludes this one",
    "key_reused": "the idempotency key was used for a different request",
    "not_recognized": "the message is of no dialect that is spoken here",
    "invalid_json": "the message is not JSON that can be read without doubt",
    "invalid_envelope": "the message does not have the shape of its dialect",
    "not_expressible": "the other dialect cannot say it, not even as a notice",
    "unknown_type": "the dialect has no message of this type",
    "taskId_mismatch": "the message names two different tasks as the one that it is about",
    "message_too_large": "the message is longer than a message may be",
    "parent_not_found": "no task has the name of the parent",
    "nested_delegation": "the work was delegated before; it cannot be delegated on",
    "agent_not_found": "no agent or person is known by this name",
    "token_not_found": "the agent has no token with this id",
    "unauthenticated": "no credential was shown, or an unknown one",
    "token_expired": "the credential has expired",
    "token_revoked": "the credential was revoked",
    "replayed": "the signed message was received before",
    "mail_not_found": "no letter has this id",
    "question_not_found": "the task has no open question with this id, or none at all",
    "already_answered": "the question has an answer already",
    "handoff_not_found": "no handoff has this id",
    "ownership_conflict": (
        "the task has an active handoff, would return to a former owner, or is not yours"
    ),
    "hash_mismatch": "the content does not match its hash",
    "conflict_retry": (
        "it changed or was unavailable while it was checked; nothing was written, retry"
    ),
    "missing_artifact": "a required artifact is missing",
    "schema_invalid": "the package does not have the shape of a package",
    "policy_violation": "a policy of the package or of the hub forbids it, for example a secret",
    "work_item_not_found": "the work queue has no item with this id",
    "wave_not_found": "no wave has this id",
    "reservation_not_found": "nothing is reserved under this name",
    "nothing_changed": "everything is already as the message asks for",
    "intent_not_found": "no intent has this id",
    "anomaly": "the result or update does not fit its intent or attempt; nothing changed",
    "overloaded": "too many requests are waiting; try again",
}
"""Code -> meaning. Stable: dialects map every code to an error of their own."""

UNRECORDED_REFUSALS = frozenset({"nothing_ready", "overloaded"})
"""Refusals that are ordinary answers: a polling agent must not fill the ledger."""

FAULTS: dict[str, str] = {
    "store_unavailable": "the store cannot be reached or written",
    "store_conflict": "another writer was faster",
    "store_corrupt": "the store is damaged or is not one of ours",
    "invalid_settings": "a setting cannot be understood",
    "ledger_broken": "the ledger does not verify",
    "hub_running": "another process is the hub of this data directory",
    "bad_key": "a key file cannot be used",
    "bad_checkpoint": "a checkpoint does not match the ledger",
    "bad_file": "a file that people may edit cannot be understood",
    "bad_archive": "an archive or a backup is damaged, foreign or of a newer format",
    "target_in_use": "the target exists or is in use",
    "bad_repository": "a git repository lacks what was requested",
    "not_delivered": "a message was not delivered",
    "question_closed": "a question was withdrawn, or its task has gone on without an answer",
    "not_answered": "nobody has answered a question in the time that was waited for it",
    "hub_unreachable": "no hub answers",
    "bad_answer": "the answer is not from a hub that this client understands",
}
"""Code -> meaning, of exceptions."""


class Refusal(Struct, frozen=True, eq=False):
    """Refusal as a value: a stable code, and a sentence that says what is wrong and what to do.

    Two are equal that say the same, wherever in a request.
    """

    code: str
    detail: str
    kind: str = ""
    """Type of the message in its sender's words, where it never became a command."""
    path: str = ""
    """Field of the request that it is about, where it is about one."""
    command: int | None = None
    """Index of the refused command, where a request has several."""

    def __eq__(self, other: object) -> bool:
        same = (self.code, self.detail, self.kind)
        return isinstance(other, Refusal) and same == (other.code, other.detail, other.kind)

    def __hash__(self) -> int:
        return hash((self.code, self.detail, self.kind))

    def with_command(self, index: int | None) -> "Refusal":
        """The same refusal, of this command."""
        return self if index is None else replace(self, command=index)

    def with_path(self, path: str) -> "Refusal":
        """The same refusal, about this field."""
        return replace(self, path=path)


class DragomanError(Exception):
    """The hub could not do its work."""

    code = ""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class Refused(DragomanError):
    """Exception that carries a refusal."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.code: str = refusal.code
        self.refusal = refusal

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


class StoreError(DragomanError):
    """The store did not answer as it must."""


class StoreUnavailable(StoreError):
    """Not reachable, not writable, full."""

    code = "store_unavailable"


class StoreLost(StoreUnavailable):
    """The connection broke during a commit, so that its outcome is unknown."""


class StoreConflict(StoreError):
    """Another writer was faster."""

    code = "store_conflict"


class ActiveHandoffConflict(StoreConflict):
    """Another handoff of the task is active, as the store found on writing."""


class StoreCorrupt(StoreError):
    """The file is damaged or is not ours."""

    code = "store_corrupt"


class SettingsError(DragomanError):
    """A setting cannot be understood."""

    code = "invalid_settings"


class NotAnswered(DragomanError):
    """A question got no answer in the time that was waited for it, or gets none any more."""

    code = "not_answered"


class LedgerError(DragomanError):
    """An entry cannot be read or does not fit its chain."""

    code = "ledger_broken"


class CheckpointsMissing(LedgerError):
    """Checkpoints that were issued are missing: nothing more is signed, and all else goes on."""
