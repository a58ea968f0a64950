"""`dragoman handoff verify` and `diagnose`: whether the record holds, and why nothing goes on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, found
from dragoman.surfaces.cli.handoff.view import print_diagnosis
from dragoman.surfaces.cli.reading import open_source
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

if TYPE_CHECKING:
    from dragoman.files.handoffs.audit import Checked
    from dragoman.files.handoffs.replay import Replayed


_UNCOMPARED = (
    "there is no ledger here to compare with: who acted, and the hashes of entries, were not "
    "checked; a line and its event that were changed alike are not found"
)

_TORN = (
    "line {} has no end: it was torn off while it was written, and does not count; in a data "
    "directory the next `dragoman tick`, or a hub that runs, completes the file"
)


def verify(
    call: Call,
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
) -> Answer:
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
        wrong_usage("name a handoff, or a file with --replay FILE")
    return _verify(call, id) if replay is None else _replay(call, replay)


def _verify(call: Call, id: str) -> Answer:
    with call.reading() as place:
        handoff = found(call, place, id)
        checks = [*place.audit(handoff)]
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

    return Answer(data, show, is_ok=is_ok)


def _print_check(check: "Checked", screen: Screen) -> None:
    verdict = ("ok  ", "green") if check.ok else ("NOT ", "bold red")
    screen.line("  ", verdict, f"{check.check}: {check.detail}")


def _replay(call: Call, file: Path) -> Answer:
    from dragoman.files.handoffs.replay import compare, gone_on, replay

    with open_source(str(file)) as lines:
        told = replay(lines)
    wrong: dict[str, str] = {}
    warnings, has_ledger = [_UNCOMPARED], call.data.is_dir()
    if has_ledger:
        with call.reading() as place:
            wrong = dict(compare(told, place.hub.store))
            warnings = [*gone_on(told, place.hub.store)]
    if told.torn:
        warnings.append(_TORN.format(told.torn))
    data = _replayed(told) | {"compared": has_ledger, "differences": wrong, "warnings": warnings}
    if wrong:
        first = next(iter(wrong))
        data |= {"code": "audit_differs", "detail": f"{first}: {wrong[first]}"}

    def show(screen: Screen) -> None:
        compared = ", as the ledger has them" if has_ledger and not wrong else ""
        screen.line(f"lines: {told.lines}; handoffs: {len(told.handoffs)}{compared}")
        for id, handoff in told.handoffs.items():
            owner = told.owners.get(handoff.task, "")
            chain = " → ".join(told.chains.get(handoff.task, ()))
            screen.line(f"  {id}  {handoff.status}  {handoff.task}: {owner} ({chain})")
        for id, why in wrong.items():
            screen.line("  ", (f"{id}: ", "bold red"), why)
        for warning in warnings:
            screen.line(("look: ", "yellow"), warning)

    return Answer(data, show, is_ok=not wrong)


def _replayed(told: "Replayed") -> dict[str, object]:
    return {
        "lines": told.lines,
        "handoffs": {id: handoff.status for id, handoff in told.handoffs.items()},
        "owners": told.owners,
        "chains": told.chains,
    }


def diagnose(call: Call, id: HandoffArgument) -> Answer:
    """Say why a handoff does not go on.

    Who must act, by when, and with which command.

    \b
    Example:
      dragoman handoff diagnose fix-login-1
    """
    from dragoman.engine.handoff_diagnosis import look_at

    with call.reading() as place:
        handoff = found(call, place, id)
        teams = place.settings.teamspaces
        outlook = place.interpreter.outlook(handoff)
        diagnosis = look_at(place.hub.store, handoff, place.hub.clock.now(), teams, outlook)
    return Answer(to_builtins(diagnosis), lambda screen: print_diagnosis(diagnosis, screen))


VERBS = (Verb("verify", verify), Verb("diagnose", diagnose))
