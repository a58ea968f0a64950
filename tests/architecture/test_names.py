"""Names of modules keep to their page, and docstrings begin with a noun or an imperative verb."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path

import pytest

from tests.requirements import proves

pytestmark = proves("PROJECT-NAMES")

ROOT = Path(__file__).parents[2]
NAMES = ROOT / "docs" / "names.md"
BANNED = "Words we do not use"
SHARED = "Module names that several folders share"


def first_column(page: str, heading: str) -> set[str]:
    """First cells of the table under a heading, without its head."""
    section = page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return set(rows[2:])


def modules_under(source: Path) -> list[str]:
    """Dotted names of all modules and packages of a source tree."""
    files = (path.relative_to(source).with_suffix("") for path in source.rglob("*.py"))
    return sorted({".".join(file.parts).removesuffix(".__init__") for file in files})


def naming_problems(
    modules: Iterable[str], banned: Collection[str], shared: Collection[str]
) -> list[str]:
    """Names with a banned word, names in several folders, and rows about names that are not."""
    folders: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        folder, _, name = module.rpartition(".")
        folders[name].append(folder)
    problems: list[str] = []
    for name, homes in sorted(folders.items()):
        problems += [f"{name}: {word} is banned" for word in name.split("_") if word in banned]
        if len(homes) > 1 and name not in shared:
            problems.append(f"{name}: in {', '.join(sorted(homes))}")
    problems += [f"{name}: not shared" for name in sorted(shared) if len(folders[name]) < 2]
    return problems


def test_modules_keep_to_the_page_of_names() -> None:
    page = NAMES.read_text(encoding="utf-8")
    modules = modules_under(ROOT / "src")
    assert len(modules) > 100, "the modules are not found any more"

    problems = naming_problems(modules, first_column(page, BANNED), first_column(page, SHARED))

    assert not problems, "\n".join(problems)


def test_tables_of_the_page_of_names_are_found() -> None:
    page = NAMES.read_text(encoding="utf-8")

    for heading in (BANNED, SHARED):
        names = first_column(page, heading)
        assert len(names) > 20, heading
        assert [name for name in names if not re.fullmatch("[a-z_]+", name)] == []


@pytest.mark.parametrize(
    ("files", "problems"),
    [
        pytest.param(["core/task.py", "core/lease.py"], [], id="plain names"),
        pytest.param(["acp/wire.py"], [], id="shared name with one meaning"),
        pytest.param(
            ["core/lease.py", "http/lease.py"],
            ["lease: in hub.core, hub.http"],
            id="name in two folders",
        ),
        pytest.param(
            ["lease/__init__.py", "core/lease.py"],
            ["lease: in hub, hub.core"],
            id="module with the name of a package",
        ),
        pytest.param(["http/desk.py"], ["desk: desk is banned"], id="banned name"),
        pytest.param(
            ["http/read_desk.py"], ["read_desk: desk is banned"], id="banned word in a name"
        ),
        pytest.param(["http/desktop.py"], [], id="banned word inside another word"),
        pytest.param(
            ["desk/__init__.py", "desk/slots.py"], ["desk: desk is banned"], id="banned package"
        ),
    ],
)
def test_each_problem_of_a_source_tree_is_found(
    tmp_path: Path, files: list[str], problems: list[str]
) -> None:
    for file in ["__init__.py", "aof/wire.py", "ccos/wire.py", *files]:
        path = tmp_path / "hub" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert naming_problems(modules_under(tmp_path), {"desk"}, {"wire"}) == problems


def test_row_about_a_name_in_one_folder_is_a_problem() -> None:
    assert naming_problems(["hub.aof.wire"], (), {"wire"}) == ["wire: not shared"]


QUESTION = re.compile(r"(What|Whether|How|Where|Why|Who|Which|When)\b")


def questions(source: str) -> list[str]:
    """First lines of docstrings, those of fields included, that begin with a question word."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and QUESTION.match(text):
                found.append(text.partition("\n")[0])
    return found


def test_no_docstring_begins_with_a_question_word() -> None:
    files = [path for folder in ("src", "tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 500, "the files are not found any more"

    problems = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in files
        for line in questions(path.read_text(encoding="utf-8"))
    ]

    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        pytest.param('"""Names of the house."""', [], id="noun"),
        pytest.param('"""What it is."""', ["What it is."], id="module"),
        pytest.param('def f():\n    """How it goes."""', ["How it goes."], id="function"),
        pytest.param(
            'class A:\n    b: int\n    """When it was.\n\n    More."""',
            ["When it was."],
            id="field",
        ),
        pytest.param('"""Whatever is found."""', [], id="other word with the same start"),
        pytest.param('f("What is next")', [], id="text that is no docstring"),
    ],
)
def test_each_question_is_found(source: str, found: list[str]) -> None:
    assert questions(source) == found
