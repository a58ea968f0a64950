"""How the commands about handoffs ask: what changes something goes by the operation of the dialect.

So the command line says no more and no less than every other door.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from dragoman.core.errors import Refusal, Refused
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.screen import Screen

if TYPE_CHECKING:
    from dragoman.core.states.handoff import Handoff
    from dragoman.engine.handoff_diagnosis import HandoffDiagnosis

HANDOFF_OPERATION = "acp_handoff"

HandoffArgument = Annotated[
    str, typer.Argument(metavar="ID", show_default=False, help="The handoff's id.")
]


def load_handoff(context: CommandContext, directory: DataDirectory, id: str) -> "Handoff":
    """Find a handoff that the actor may see; raises the refusal."""
    from dragoman.engine.reads.handoffs import find_handoff

    handoff = find_handoff(
        directory.hub.store, id, context.acting_agent(), closed_teamspaces(context, directory)
    )
    if isinstance(handoff, Refusal):
        raise Refused(handoff)
    return handoff


def closed_teamspaces(context: CommandContext, directory: DataDirectory) -> frozenset[str]:
    """Teamspaces that the actor does not belong to."""
    from dragoman.engine.reads.teamspaces import hidden_teamspaces

    return hidden_teamspaces(
        directory.settings.teamspaces, context.actor(directory, context.acting_agent())
    )


def run_action(context: CommandContext, action: str, arguments: Mapping[str, Any]) -> CommandResult:
    """Open the data directory and run an action on a handoff."""
    with context.open_for_writing(create_missing=False) as directory:
        return run_action_in(context, directory, action, arguments)


def run_action_in(
    context: CommandContext, directory: DataDirectory, action: str, arguments: Mapping[str, Any]
) -> CommandResult:
    """Run an action on a handoff, without its empty arguments."""
    from dragoman.engine.plan import Rejected

    given_arguments = {
        name: value for name, value in arguments.items() if value not in ("", None, [], ())
    }
    actor = context.actor(directory, context.acting_agent())
    answer = directory.router.call(HANDOFF_OPERATION, {"action": action, **given_arguments}, actor)
    reply = cast(dict[str, Any], answer.reply or {})
    after = _diagnose_after(context, directory, str(reply.get("handoff_id", "")))
    refusal = (answer.refusal.code, answer.detail) if isinstance(answer, Rejected) else None
    return _make_result(context, reply, refusal, after)


def _diagnose_after(
    context: CommandContext, directory: DataDirectory, id: str
) -> "HandoffDiagnosis | None":
    """Diagnosis of the handoff after the action, if the actor may see it."""
    from dragoman.engine.handoff_diagnosis import diagnose_handoff
    from dragoman.engine.reads.handoffs import find_handoff

    if not id:
        return None
    handoff = find_handoff(
        directory.hub.store, id, context.acting_agent(), closed_teamspaces(context, directory)
    )
    if isinstance(handoff, Refusal):
        return None
    return diagnose_handoff(
        directory.hub.store, handoff, directory.hub.clock.now(), directory.settings.teamspaces
    )


def _split_reason(
    refusal: tuple[str, str] | None, failures: Sequence[str]
) -> tuple[str, Sequence[str]]:
    """Separate the reason of a refusal from the other failures, so that none is printed twice."""
    if refusal is None:
        return "", failures
    code, detail = refusal
    if len(failures) > 1 and detail == "; ".join(failures):
        return f"{len(failures)} faults", failures
    return detail, [one for one in failures if one not in (detail, f"{code}: {detail}")]


def _verification_lines(
    metadata: Mapping[str, Any], failures: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Lines about verification: label, style and text."""
    passed = metadata.get("verification_passed")
    if passed:
        yield "passed: ", "green", ", ".join(passed)
    yield from (("failed: ", "red", failure) for failure in failures)


def _make_result(
    context: CommandContext,
    reply: dict[str, Any],
    refusal: tuple[str, str] | None,
    after: "HandoffDiagnosis | None",
) -> CommandResult:
    """Result with the dialect's reply; a refusal is printed as by every command."""

    metadata = cast(dict[str, Any], reply.get("metadata") or {})
    reason, failures = _split_reason(refusal, metadata.get("verification_failed", ()))

    def show(screen: Screen) -> None:
        if refusal is not None:
            context.err.line((f"{refusal[0]}: ", "bold red"), reason)
        status = reply.get("status", "") if after is None else after.status
        if status:
            screen.line((reply["handoff_id"], "bold"), f" {status}")
        for head, style, check in _verification_lines(metadata, failures):
            screen.line((head, style), check)
        if "package_hash" in metadata:
            screen.line(f"package {metadata['package_hash']}")
        if after is not None and after.due_by and "due_by" in metadata:
            screen.line(f"by {after.due_by}")
        for remark in metadata.get("warnings", ()):
            screen.line(("look: ", "yellow"), str(remark))
        for remark in metadata.get("workq_items", ()):
            screen.line(("work queue: ", "yellow"), str(remark))
        if after is not None and after.steps:
            screen.line(f"next: {after.summary}")

    error_fields = {} if refusal is None else {"code": refusal[0], "detail": refusal[1]}
    return CommandResult({**reply, **error_fields}, show, is_ok=refusal is None)
