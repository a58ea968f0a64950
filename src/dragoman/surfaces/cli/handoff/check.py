"""`dragoman handoff verify` and `diagnose`: whether the record holds, and why nothing goes on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, load_handoff
from dragoman.surfaces.cli.handoff.view import print_diagnosis
from dragoman.surfaces.cli.reading import open_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand

if TYPE_CHECKING:
    from dragoman.files.handoffs.audit import HandoffCheck
    from dragoman.files.handoffs.replay import ReplayedLog


_NOT_COMPARED = (
    "there is no ledger here to compare with: who acted, and the hashes of entries, were not "
    "checked; a line and its event that were changed alike are not found"
)

_TORN_LINE = (
    "line {} has no end: it was torn off while it was written, and does not count; in a data "
    "directory the next `dragoman tick`, or a hub that runs, completes the file"
)


def verify(
    context: CommandContext,
    id: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="The handoff's id.")
    ] = "",
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            show_default=False,
            help="Replay a handoffs.jsonl and compare what it tells with the ledger.",
        ),
    ] = None,
) -> CommandResult:
    """Prove that a handoff is as it was written.

    Its entries, its state, its package, its artifacts and its audit lines are checked.

    With --replay, every handoff of an audit file is replayed from that file alone, and each line
    is compared with its event; states, owners and chains are printed. If there is a ledger here,
    every line is compared with it.

    \b
    Examples:
      dragoman handoff verify fix-login-1
      dragoman handoff verify --replay .dragoman/teamspaces/default/handoffs/handoffs.jsonl
    """
    if bool(id) == (replay is not None):
        raise_usage_error("name a handoff, or a file with --replay FILE")
    return _verify_handoff(context, id) if replay is None else _replay_file(context, replay)


def _verify_handoff(context: CommandContext, id: str) -> CommandResult:
    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        checks = [*directory.audit(handoff)]
    is_ok = all(check.ok for check in checks)
    data: dict[str, object] = {"handoff_id": id, "checks": to_builtins(checks)}
    if not is_ok:
        first = next(check for check in checks if not check.ok)
        data |= {"code": "handoff_broken", "detail": f"{first.check}: {first.detail}"}

    def show(screen: Screen) -> None:
        screen.line(
            (id, "bold"), "  ", ("all good", "green") if is_ok else ("NOT good", "bold red")
        )
        for check in checks:
            _print_check(check, screen)

    return CommandResult(data, show, is_ok=is_ok)


def _print_check(check: "HandoffCheck", screen: Screen) -> None:
    verdict = ("ok  ", "green") if check.ok else ("NOT ", "bold red")
    screen.line("  ", verdict, f"{check.check}: {check.detail}")


def _replay_file(context: CommandContext, file: Path) -> CommandResult:
    from dragoman.files.handoffs.replay import (
        compare_with_ledger,
        handed_on_elsewhere,
        replay_lines,
    )

    with open_source(str(file)) as lines:
        replayed = replay_lines(lines)
    differences: dict[str, str] = {}
    warnings, has_ledger = [_NOT_COMPARED], context.data.is_dir()
    if has_ledger:
        with context.open_for_reading() as directory:
            differences = dict(compare_with_ledger(replayed, directory.hub.store))
            warnings = [*handed_on_elsewhere(replayed, directory.hub.store)]
    if replayed.torn:
        warnings.append(_TORN_LINE.format(replayed.torn))
    data = _replay_to_dict(replayed) | {
        "compared": has_ledger,
        "differences": differences,
        "warnings": warnings,
    }
    if differences:
        first = next(iter(differences))
        data |= {"code": "audit_differs", "detail": f"{first}: {differences[first]}"}

    def show(screen: Screen) -> None:
        compared = ", as the ledger has them" if has_ledger and not differences else ""
        screen.line(f"lines: {replayed.lines}; handoffs: {len(replayed.handoffs)}{compared}")
        for id, handoff in replayed.handoffs.items():
            owner = replayed.owners.get(handoff.task, "")
            chain = " → ".join(replayed.chains.get(handoff.task, ()))
            screen.line(f"  {id}  {handoff.status}  {handoff.task}: {owner} ({chain})")
        for id, why in differences.items():
            screen.line("  ", (f"{id}: ", "bold red"), why)
        for warning in warnings:
            screen.line(("look: ", "yellow"), warning)

    return CommandResult(data, show, is_ok=not differences)


def _replay_to_dict(replayed: "ReplayedLog") -> dict[str, object]:
    return {
        "lines": replayed.lines,
        "handoffs": {id: handoff.status for id, handoff in replayed.handoffs.items()},
        "owners": replayed.owners,
        "chains": replayed.chains,
    }


def diagnose(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Say why a handoff does not go on.

    Who must act, by when, and with which command.

    \b
    Example:
      dragoman handoff diagnose fix-login-1
    """
    from dragoman.engine.handoff_diagnosis import diagnose_handoff

    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        teams = directory.settings.teamspaces
        outlook = directory.router.diagnose_handoff(handoff)
        diagnosis = diagnose_handoff(
            directory.hub.store, handoff, directory.hub.clock.now(), teams, outlook
        )
    return CommandResult(to_builtins(diagnosis), lambda screen: print_diagnosis(diagnosis, screen))


CHECK_COMMANDS = (CliCommand("verify", verify), CliCommand("diagnose", diagnose))
