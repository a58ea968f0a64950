"""The source distribution: complete for the links of the README and for the tests."""

import re
import tomllib
from pathlib import Path

from tests.requirements import proves

pytestmark = proves("PROJECT-SDIST")

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ALWAYS_INCLUDED = {"pyproject.toml", "LICENSE"}
"""Files that hatch includes by itself."""


def test_source_distribution_has_all_that_the_readme_links_and_tests_need() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    taken = {path.removeprefix("/") for path in included} | ALWAYS_INCLUDED
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {target.split("/")[0] for target in re.findall(r"\]\((?!https?:)([^)#]+)", readme)}
    assert linked > {"docs"}
    assert linked - taken == set()
    assert {"src", "tests", "bench", ".ci", "constraints.txt"} - taken == set()
    assert [path for path in taken if not (ROOT / path).exists()] == []


def test_every_dependency_is_pinned() -> None:
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    wanted = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]
    names = {re.split(r"[^\w-]", dependency)[0] for dependency in wanted}
    assert names - {line.split("==")[0] for line in pinned} == set()
