"""Delegation learns: the simulation behind the page, whatever the lots, and the page itself."""

import pytest

from docs.learning import (
    CHOICES,
    DOCS,
    INTENTS,
    SEED,
    WINDOW,
    by_score,
    lots,
    page,
    plot,
    shares_of_best,
    success_of,
    traces,
)
from tests.requirements import proves

pytestmark = proves("CCOS-LEARNING")


@pytest.mark.parametrize("seed", [SEED, 1, 2, 3])
def test_more_succeeds_than_by_chance_and_by_the_formula_of_the_origin(seed: int) -> None:
    success = {name: success_of(traces(choose, lots(seed))) for name, choose in CHOICES.items()}
    ours = success.pop("this hub")
    assert len(success) == 3
    assert all(ours > other + 0.15 for other in success.values()), success


@pytest.mark.parametrize("seed", [SEED, 1, 2, 3])
def test_the_share_of_the_best_rises(seed: int) -> None:
    runs = traces(by_score, lots(seed))
    shares = shares_of_best(runs)
    assert len(shares) == INTENTS // WINDOW
    assert shares[0] < shares[-1]
    assert min(shares[-5:]) > 0.8
    assert max(shares[-5:]) < 1, "the newcomers' turn is never given up"


@proves("CCOS-NEWCOMERS")
def test_nobody_is_forgotten() -> None:
    for run in traces(by_score, lots(SEED)):
        assert {"anna", "bert", "cleo"} == set(run.given[-100:])


def test_the_same_lots_give_the_same_story() -> None:
    assert traces(by_score, lots(7)) == traces(by_score, lots(7))


@proves("PROJECT-DOCS", "CCOS-THRESHOLD")
def test_the_page_and_its_plot_are_what_the_simulation_gives() -> None:
    found = (DOCS / "delegation.md").read_text(encoding="utf-8")
    assert page(found) == found, "run: uv run python docs/learning.py"
    assert (DOCS / "learning.svg").read_text(encoding="utf-8") == plot()
