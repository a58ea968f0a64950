"""Reading trial: may somebody who has never seen the tree find their way by names alone?

    uv run python -m tests.reading_trial 7        # tree, 40 behaviours and 40 modules of seed 7

The reader sees this text only. For each behaviour: in which module does it live? For each module:
what does it do? Whatever several readers miss has a name that should change.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.requirements import REQUIREMENTS, Requirement

SOURCE = Path(__file__).parents[1] / "src" / "dragoman"
NUMBER = 40
NO_PLACE_IN_SOURCE = (
    *("PROJECT-", "INCIDENTS", "POWER-", "CRASH-", "BENCH-", "SIM-", "LINEAR-", "ACP-MODEL"),
    *("MODEL-", "SURFACE-ALIKE", "ACP-GUIDE", "SDK-GUIDE", "RUN-RECIPES", "TESTING-EXAMPLE"),
)
"""Requirements about tests, docs, builds and faults: no module of the source holds them."""


def module_names() -> list[str]:
    """List the modules of the package, without its `__init__` files."""
    paths = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
    return sorted(str(path) for path in paths if path.name != "__init__.py")


def draw(seed: int, modules: Sequence[str]) -> tuple[list[Requirement], list[str]]:
    """Draw the behaviours and the modules of a trial; the same seed draws the same."""
    random = Random(seed)
    behaviours = [
        requirement
        for requirement in REQUIREMENTS.values()
        if not requirement.id.startswith(NO_PLACE_IN_SOURCE)
    ]
    return random.sample(behaviours, NUMBER), random.sample(list(modules), NUMBER)


def format_trial(seed: int) -> str:
    """Format what the reader gets."""
    modules = module_names()
    behaviours, drawn = draw(seed, modules)
    lines = ["Modules of src/dragoman:", *modules, "", "Where does it live?"]
    lines += [
        f"{number}. [{each.section}] {each.behaviour}" for number, each in enumerate(behaviours, 1)
    ]
    lines += ["", "What does it do?"]
    lines += [f"{number}. {name}" for number, name in enumerate(drawn, 1)]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(format_trial(int(sys.argv[1])) + "\n")
