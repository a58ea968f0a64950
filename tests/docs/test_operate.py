"""The files that the page about operating shows are valid, and start our program as it is."""

import json
import re
import shlex
import urllib.error
import urllib.request
from configparser import ConfigParser
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from docs.generate import DOCS
from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.surfaces.cli.app import main
from tests.e2e.program import Program, wait_for_exit
from tests.requirements import proves

pytestmark = proves("PROJECT-DOCS")

PAGE = (DOCS / "operate.md").read_text(encoding="utf-8")
INSTRUCTIONS = {
    *("FROM", "RUN", "COPY", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT"),
    "CMD",
}


def _block(language: str) -> str:
    (block,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return block


def _assert_accepted(command: list[str]) -> None:
    """Assert that our program knows the command and its options; with --help it runs nothing."""
    program, *arguments = command
    assert program.rpartition("/")[2] == "dragoman"
    printed, err = StringIO(), StringIO()
    with redirect_stdout(printed):
        assert main(CLI_WIRING, [*arguments, "--help"], printed, err, lambda: False) == 0
    options = [word for word in arguments if word.startswith("--")]
    assert [option for option in options if option not in printed.getvalue()] == []


def test_unit_file_is_valid_and_starts_the_hub() -> None:
    unit = ConfigParser(interpolation=None)
    unit.read_string(_block("ini"))
    assert unit.sections() == ["Unit", "Service", "Install"]
    service = unit["Service"]
    command = shlex.split(service["ExecStart"])
    assert "up" in command
    _assert_accepted(command)
    assert command[0].startswith("/"), "systemd looks for no program in PATH"
    writable = service["ReadWritePaths"]
    assert command[command.index("--data") + 1].startswith(f"{writable}/")
    assert service["WorkingDirectory"].startswith(writable)


def test_container_file_has_known_instructions_and_starts_the_hub() -> None:
    lines = _block("dockerfile").splitlines()
    words = dict(line.split(maxsplit=1) for line in lines)
    assert set(words) == INSTRUCTIONS
    assert lines[0].startswith("FROM python:3.11")
    _assert_accepted(_container_command())


def test_hub_of_the_container_starts_with_its_settings(tmp_path: Path, bytecode: Path) -> None:
    program, *arguments = _container_command()
    folder, data = arguments[arguments.index("--data") + 1], tmp_path / "data"
    assert f"VOLUME {folder}\n" in _block("dockerfile")
    data.mkdir(mode=0o700)
    (data / "dragoman.toml").write_text(_block("toml"))
    here = {folder: str(data), arguments[arguments.index("--port") + 1]: "0"}

    with closing(Program(data, bytecode)) as hub:
        process = hub.start(*(here.get(word, word) for word in arguments), "--json")
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, wait_for_exit(process).err
        startup = json.loads(line)
        assert startup["ok"], startup
        url = startup["url"]

        assert program == "dragoman"
        assert _readiness(url, "hub.example") == 200
        assert _readiness(url, "other.example") == 421


def _container_command() -> list[str]:
    """The command that the container runs."""
    words = dict(line.split(maxsplit=1) for line in _block("dockerfile").splitlines())
    return [*json.loads(words["ENTRYPOINT"]), *json.loads(words["CMD"])]


def _readiness(url: str, host: str) -> int:
    """Status of `/readyz` for a caller who calls the hub by that name."""
    request = urllib.request.Request(f"{url}/readyz", headers={"Host": host})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.mark.parametrize("setting", ["hub.drain_ms"])
def test_setting_of_the_page_exists(setting: str) -> None:
    section, _, name = setting.partition(".")
    assert f"`[{section}]" in (DOCS / "stores.md").read_text(encoding="utf-8")
    assert name in (DOCS / "stores.md").read_text(encoding="utf-8")
