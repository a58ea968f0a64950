"""Tags like S-TASK lead a reader of the code to a page of the repository."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.requirements import proves

pytestmark = proves("PROJECT-TAGS")

ROOT = Path(__file__).parents[2]
TAG = re.compile(r"\bS-[A-Z]+(?:-\d+)?\b")


def test_every_cited_tag_is_explained_on_a_page() -> None:
    cited = _tags(path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))
    explained = _tags(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
    )
    assert len(cited) > 50, "the tags are not found any more"
    families = {tag.rpartition("-")[0] for tag in explained}
    assert cited - explained - families == set()


def _tags(paths: Iterable[Path]) -> set[str]:
    return {tag for path in paths for tag in TAG.findall(path.read_text(encoding="utf-8"))}
