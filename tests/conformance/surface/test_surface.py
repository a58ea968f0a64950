"""One script through every door: the same answers, the same refusals, the same ledger."""

from pathlib import Path
from typing import Any, cast

from tests.conformance.surface.doors import Look, Played, Step, open_doors
from tests.conformance.surface.script import SCRIPT
from tests.requirements import proves

NOTHING: tuple[Any, ...] = (None, "", [], {})
COUNTERS = frozenset({"attempt", "fence", "notes", "failures", "warnings", "delegationDepth"})


@proves("ENGINE-SHOWN", "SURFACE-ALIKE")
def test_every_door_leads_to_the_same_hub(tmp_path: Path) -> None:
    steps = [step for step, _ in SCRIPT]
    with open_doors(tmp_path / "hub") as doors:
        played = {name: door.play(steps) for name, door in doors.items()}

    hub = played["hub"]
    for name, through in played.items():
        for at, (step, code) in enumerate(SCRIPT):
            said, wanted = through.said[at], hub.said[at].answer
            assert said.code == code, (name, step)
            assert said.answer == (_brief(step, wanted) if name == "mcp" else wanted), (name, step)
        assert through.ledger == hub.ledger, name
    assert _refusals(hub) > 10


def _refusals(hub: Played) -> int:
    return sum(line["event"] == "command.refused" for line in hub.ledger)


def _brief(step: Step, answer: Any) -> Any:
    """What is left of a look for models, who pay for every word."""
    if not isinstance(step, Look) or answer is None:
        return answer
    if step.history:
        return [
            _filled({name: entry[name] for name in ("at", "actor", "type", "body")})
            for entry in answer
        ]
    return _filled(answer) if step.task else {"tasks": [_filled(one) for one in answer["tasks"]]}


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    parts = {name: _filled(part) for name, part in cast(dict[str, Any], value).items()}
    return {
        name: part
        for name, part in parts.items()
        if part not in NOTHING and not (part == 0 and name in COUNTERS)
    }
