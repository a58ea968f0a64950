"""The build of the dashboard: what makes it build again, and what happens where it cannot."""

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from dragoman.surfaces.http.dashboard import load_dashboard
from tests.requirements import proves

ROOT = Path(__file__).parents[2]

pytestmark = proves("WEB-BUILD")


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """Import the build hook, without the build system that it is a part of."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lock_file_names_no_registry() -> None:
    lock = json.loads((ROOT / "ui" / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)


def test_every_source_makes_it_build_again(hook: ModuleType, tmp_path: Path) -> None:
    ui = tmp_path / "ui"
    shutil.copytree(ROOT / "ui", ui, ignore=shutil.ignore_patterns("node_modules"))
    names = hook.SOURCES
    before = hook.digest_sources(ui, names)
    assert hook.digest_sources(ui, names) == before
    for file in ("src/App.tsx", "index.html", "package-lock.json", "public/icon.svg"):
        (ui / file).write_text("changed")
        after = hook.digest_sources(ui, names)
        assert after != before
        before = after


def test_built_dashboard_is_that_of_the_sources(hook: ModuleType) -> None:
    built = ROOT / hook.BUILT_IN
    assert (built / hook.STAMP).read_text() == hook.digest_sources(ROOT / "ui", hook.SOURCES)
    assert hook.build_dashboard(ROOT / "ui", built) is False


def test_types_of_the_sources_hold_with_those_of_the_api(hook: ModuleType) -> None:
    hook.run_node(ROOT / "ui", "node", "node_modules/typescript/bin/tsc", "--noEmit")


def test_folder_without_sources_is_told(hook: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(hook.DashboardError, match="there are no sources"):
        hook.build_dashboard(tmp_path, tmp_path / "built")


def test_packages_that_cannot_be_fetched_are_told(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ui = tmp_path / "ui"
    shutil.copytree(ROOT / "ui", ui, ignore=shutil.ignore_patterns("node_modules"))
    # Nothing listens there, and nothing is kept from before.
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    with pytest.raises(hook.DashboardError, match="npm ci failed"):
        hook.build_dashboard(ui, tmp_path / "built")
    assert not (tmp_path / "built").exists()


def test_install_goes_on_where_the_dashboard_cannot_be_built(
    hook: ModuleType, tmp_path: Path
) -> None:
    warnings: list[str] = []
    app = SimpleNamespace(display_warning=warnings.append)
    build_data: dict[str, list[str]] = {"artifacts": []}
    target = hook.DashboardHook(str(tmp_path), {}, None, None, "", "wheel", app)
    target.initialize("editable", build_data)
    (warning,) = warnings
    assert warning.startswith("the dashboard is not built: there are no sources in ")


def test_dashboard_is_small() -> None:
    sizes = {path: len(file.compressed or file.content) for path, file in load_dashboard().items()}
    # A reader of Latin script gets two of the fonts.
    loaded = [
        size
        for path, size in sizes.items()
        if path.endswith((".js", ".css", "/")) or "-latin-wght-" in path
    ]
    assert sum(loaded) < 200 * 1024
    assert sum(sizes.values()) < 350 * 1024
