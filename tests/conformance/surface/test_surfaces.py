"""One script on every surface gives the same answers, the same refusals and the same ledger."""

from pathlib import Path
from typing import Any, cast

from tests.conformance.surface.script import LATE_WRITES, SCRIPT
from tests.conformance.surface.surfaces import Query, ScriptResult, Step, open_surfaces
from tests.requirements import proves

NOTHING: tuple[Any, ...] = (None, "", [], {})
COUNTERS = frozenset({"attempt", "fence", "notes", "failures", "warnings", "delegationDepth"})


@proves("ENGINE-SHOWN", "SURFACE-ALIKE")
def test_every_surface_gives_the_same_answers_and_the_same_ledger(tmp_path: Path) -> None:
    steps = [step for step, _ in SCRIPT]
    with open_surfaces(tmp_path / "hub") as surfaces:
        results = {name: surface.play(steps) for name, surface in surfaces.items()}

    hub = results["hub"]
    for name, result in results.items():
        for at, (step, code) in enumerate(SCRIPT):
            got, expected = result.results[at], hub.results[at].answer
            assert got.code == code, (name, step)
            assert got.answer == (_brief(step, expected) if name == "mcp" else expected), (
                name,
                step,
            )
        assert result.ledger == hub.ledger, name
    assert _refusals(hub) > 10


@proves("LEASE-LATE")
def test_every_surface_refuses_late_writes_of_the_assignee(tmp_path: Path) -> None:
    steps = [step for step, _ in LATE_WRITES]
    expected = [code for _, code in LATE_WRITES]
    with open_surfaces(tmp_path / "hub") as surfaces:
        for name, surface in surfaces.items():
            assert [one.code for one in surface.play(steps).results] == expected, name


def _refusals(hub: ScriptResult) -> int:
    return sum(line["event"] == "command.refused" for line in hub.ledger)


def _brief(step: Step, answer: Any) -> Any:
    """Reduce a query's answer to the compact form that models get."""
    if not isinstance(step, Query) or answer is None:
        return answer
    if step.history:
        return [
            _without_empty({name: entry[name] for name in ("at", "actor", "type", "body")})
            for entry in answer
        ]
    return (
        _without_empty(answer)
        if step.task
        else {"tasks": [_without_empty(one) for one in answer["tasks"]]}
    )


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {name: _without_empty(part) for name, part in cast(dict[str, Any], value).items()}
    return {
        name: part
        for name, part in parts.items()
        if part not in NOTHING and not (part == 0 and name in COUNTERS)
    }
