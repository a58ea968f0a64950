"""`dragoman doctor`: what is wrong with this installation and data directory, and what to do."""

from dragoman.core.errors import DragomanError
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.doctor import checks_inside, checks_outside
from dragoman.surfaces.cli.doctor.patient import Check, Diagnosis, Patient, bad
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb
from dragoman.system.plain_file import what_to_do
from dragoman.text.fault_words import in_words

CHECKS: dict[str, Check] = {
    "python": checks_outside.python,
    "sqlite": checks_outside.sqlite,
    "directory": checks_outside.directory,
    "disk": checks_outside.disk,
    "settings": checks_outside.settings,
    "git": checks_outside.git,
    "agents": checks_outside.agents,
    "keys": checks_outside.keys,
    "hub": checks_outside.hub,
    "store": checks_inside.store,
    "ledger": checks_inside.ledger,
    "clock": checks_inside.clock,
    "leases": checks_inside.leases,
    "files": checks_inside.files,
    "notify": checks_inside.notify,
}
"""Checks in the order in which they run: the store is opened by the check of that name."""

_STYLES = {"ok": "green", "warning": "yellow", "bad": "bold red"}


def doctor(call: Call) -> Answer:
    """Look for what is wrong, and say what to do. Nothing is changed.

    Exits 1 if anything is bad.

    \b
    Example:
      dragoman doctor
    """
    if call.shared.now is not None:
        _check_clock(call)
    patient, found = Patient(call), dict[str, Diagnosis]()
    try:
        for name, check in CHECKS.items():
            diagnosis = _isolated(check, patient)
            if diagnosis is not None:
                found[name] = diagnosis
                patient.wrong |= {name} if diagnosis.state == "bad" else set()
    finally:
        patient.close()
    data: dict[str, object] = {
        "data": str(call.data.absolute()),
        "checks": [
            {"name": name, "state": d.state, "found": d.found, "advice": d.advice or None}
            for name, d in found.items()
        ],
    }
    if patient.wrong:
        data |= {"code": "unhealthy", "detail": f"bad: {', '.join(sorted(patient.wrong))}"}
    return Answer(data, lambda screen: _print(found, screen), is_ok=not patient.wrong)


def _check_clock(call: Call) -> None:
    """Refuse --now while a hub runs: a running hub has a running clock."""
    from dragoman.system.hub_address import clock_runs, find_hub

    running = find_hub(call.data)
    if running is not None:
        raise clock_runs(running)


def _isolated(check: Check, patient: Patient) -> Diagnosis | None:
    """Run a check; a failure becomes its result, and the other checks still run."""
    try:
        return check(patient)
    except DragomanError as error:
        return bad(error.detail)
    except OSError as error:
        return bad(in_words(error), what_to_do(error))


def _print(found: dict[str, Diagnosis], screen: Screen) -> None:
    for name, diagnosis in found.items():
        state = (f"{diagnosis.state:<8}", _STYLES[diagnosis.state])
        screen.line(state, f"{name:<10} ", diagnosis.found)
        if diagnosis.advice:
            screen.line(f"{'':<19} → {diagnosis.advice}")


VERBS = (Verb("doctor", doctor, speaks=False),)
