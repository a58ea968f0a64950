"""`dragoman doctor`: what is wrong with this installation and data directory, and what to do."""

from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.doctor import checks_inside, checks_outside
from dragoman.surfaces.cli.doctor.patient import Check, CheckResult, Installation, bad
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand
from dragoman.system.plain_file import file_remedy
from dragoman.text.fault_words import describe_exception

CHECKS: dict[str, Check] = {
    "python": checks_outside.check_python,
    "sqlite": checks_outside.check_sqlite,
    "directory": checks_outside.check_directory,
    "disk": checks_outside.check_disk,
    "settings": checks_outside.check_settings,
    "git": checks_outside.check_git,
    "agents": checks_outside.check_agents,
    "keys": checks_outside.check_keys,
    "hub": checks_outside.check_hub,
    "store": checks_inside.check_store,
    "ledger": checks_inside.check_ledger_tail,
    "clock": checks_inside.check_clock,
    "leases": checks_inside.check_leases,
    "files": checks_inside.check_files,
    "notify": checks_inside.check_notify,
}
"""Checks in the order in which they run: the store is opened by the check of that name."""

_STATE_STYLES = {"ok": "green", "warning": "yellow", "bad": "bold red"}


def doctor(context: CommandContext) -> CommandResult:
    """Look for what is wrong, and say what to do. Nothing is changed.

    Exits 1 if anything is bad.

    \b
    Example:
      dragoman doctor
    """
    if context.shared.now is not None:
        _check_clock_not_overridden(context)
    patient, results = Installation(context), dict[str, CheckResult]()
    try:
        for name, check in CHECKS.items():
            result = _run_check(check, patient)
            if result is not None:
                results[name] = result
                patient.failed_checks |= {name} if result.state == "bad" else set()
    finally:
        patient.close()
    data: dict[str, object] = {
        "data": str(context.data.absolute()),
        "checks": [
            {"name": name, "state": d.state, "found": d.finding, "advice": d.advice or None}
            for name, d in results.items()
        ],
    }
    if patient.failed_checks:
        data |= {"code": "unhealthy", "detail": f"bad: {', '.join(sorted(patient.failed_checks))}"}
    return CommandResult(
        data, lambda screen: _print_results(results, screen), is_ok=not patient.failed_checks
    )


def _check_clock_not_overridden(context: CommandContext) -> None:
    """Refuse --now while a hub runs: a running hub has a running clock."""
    from dragoman.system.hub_address import clock_override_error, find_hub

    running = find_hub(context.data)
    if running is not None:
        raise clock_override_error(running)


def _run_check(check: Check, installation: Installation) -> CheckResult | None:
    """Run a check; a failure becomes its result, and the other checks still run."""
    try:
        return check(installation)
    except DragomanError as error:
        return bad(error.detail)
    except OSError as error:
        return bad(describe_exception(error), file_remedy(error))


def _print_results(results: dict[str, CheckResult], screen: Screen) -> None:
    for name, result in results.items():
        state = (f"{result.state:<8}", _STATE_STYLES[result.state])
        screen.line(state, f"{name:<10} ", result.finding)
        if result.advice:
            screen.line(f"{'':<19} → {result.advice}")


COMMANDS = (CliCommand("doctor", doctor, takes_as=False),)
