"""Separation of started agents from the hub: as another user of the system, or in a sandbox."""

import asyncio
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.bootstrap.preflight import check_settings
from dragoman.bootstrap.separation import restrict_directory
from dragoman.config import AgentSettings, Settings, describe_separation
from dragoman.core.attempt import CheckpointTask, ClaimTask
from dragoman.core.errors import SettingsError
from dragoman.core.task_state import MoveTask
from dragoman.system.agent_user import find_user, give_folder
from dragoman.system.bearer_tokens import load_or_create_token
from dragoman.system.safe_fs import SafeDisk
from tests.agents.running_hub import FAST, run, running_hub
from tests.agents.test_hub_restart import start_hub_process
from tests.requirements import proves
from tests.traces import Trace

STRANGER = "nobody"
"""A user that every machine has."""

REPORT = r"""
report() {
  echo done > "$DRAGOMAN_FOLDER/outputs/summary.md"
  printf 'AOF/1 {"protocol":"aof","version":1,"type":"completion.report",'
  printf '"taskId":"%s","fromAgent":"%s",' "$DRAGOMAN_TASK" "$DRAGOMAN_AGENT"
  printf '"toAgent":"dispatcher","sentAt":"2026-02-09T21:00:00Z",'
  printf '"payload":{"outcome":"done","summaryRef":"outputs/summary.md","notes":"by a shell",'
  printf '"tests":{"total":0,"passed":0,"failed":0}}}\n'
}
may() { if eval "$2" > /dev/null 2>&1; then echo "may $1"; else echo "may not $1"; fi; }
"""
"""Defines `report` and `may` in a shell program."""

INTRUDER = (
    REPORT
    + r"""
data=${DRAGOMAN_FOLDER%/tasks/*} box=$data/inbox/ada
may 'read the token' "cat $data/token"
may 'read the key' "cat $data/keys/ledger.key"
may 'read the secret' "cat $data/keys/secret"
may 'read the settings' "cat $data/dragoman.toml"
may 'read the database' "cat $data/dragoman.db"
may 'read the events' "cat $data/events/$(date -u +%F).jsonl"
may 'list the data directory' "ls $data | grep -q keys"
may 'list the tasks of others' "ls $data/tasks/in-progress | grep -v $DRAGOMAN_TASK"
may 'read the files of another' "cat $data/tasks/in-progress/$OTHER_TASK/inputs/secret.txt"
may 'read the task of another' "cat $data/tasks/in-progress/$OTHER_TASK.md"
may 'read the runs of another' "cat $data/runs/$OTHER_TASK/run.json"
may 'write beside the tasks' "echo x > $data/tasks/in-progress/x"
may 'read the inbox of another' "cat $data/inbox/bob/letter.tmp"
may 'write to the inbox of another' "echo x > $data/inbox/bob/x.json"
may 'write to the inbox of all' "echo x > $data/inbox/x.json"
may 'change its log' "echo x >> $data/runs/$DRAGOMAN_TASK/output.log"
may 'read the environment of the hub' "tr '\0' '\n' < /proc/$HUB_PID/environ | grep -q ."
may 'read its prompt' 'grep -q stars "$DRAGOMAN_PROMPT"'
may 'read its log' "cat $data/runs/$DRAGOMAN_TASK/output.log"
may 'list its runs' "ls $data/runs/$DRAGOMAN_TASK"
may 'write to its inbox' "mkdir -p $box && echo {} > $box/.x && mv $box/.x $box/x.json"
may 'write to its outputs' 'echo x > "$DRAGOMAN_FOLDER/outputs/x"'
may 'write where it works' 'echo x > x'
echo reopened > /dev/stdout
report
"""
)
"""Tries to reach what is not its own, and what is."""

EVERYTHING = set(re.findall(r"^may '([^']+)'", INTRUDER, re.MULTILINE))

ITS_OWN = {
    "read its prompt",
    "read its log",
    "list its runs",
    "write to its inbox",
    "write to its outputs",
    "write where it works",
}


def shell_agent(name: str, program: str, **settings: object) -> str:
    """Settings of an agent that is a shell program."""
    lines = [f"[agents.{name}]", f"command = {json.dumps(['/bin/sh', '-c', program])}"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


@pytest.fixture
def passable() -> Generator[Path]:
    """A folder that every user may pass through, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-separation-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def is_root() -> bool:
    """Tell whether these tests may switch users; if not, they prove the refusal."""
    return os.geteuid() == 0


def intrude(data: Path, section: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Run the intruder beside the task and the inbox of another agent; what it may do."""

    async def prepare() -> tuple[str, str]:
        async with running_hub(data, FAST, start=False) as hub:
            other = hub.do(ClaimTask(hub.make("Another"), "bob", "s-1")).task
            task = hub.make("Count the stars")
            assert not list(hub.directory.catch_up())
            return task, hub.task(other).aof_id

    task, other = asyncio.run(prepare())
    (data / "tasks/in-progress" / other / "inputs/secret.txt").write_text("secret")
    (data / "inbox/bob").mkdir(parents=True)
    (data / "inbox/bob/letter.tmp").write_text("{}")
    load_or_create_token(data)
    monkeypatch.setenv("HUB_PID", f"{os.getpid()}")
    monkeypatch.setenv("OTHER_TASK", other)
    found = set[str]()

    async def scenario() -> None:
        async with running_hub(data, FAST + section) as hub:
            done = await hub.until_status(task, "review")
            assert done.reported is not None
            assert done.reported.by == ""
            found.update(re.findall(r" out may (?!not )(.+)", hub.log(task)))
            assert " out reopened\n" in hub.log(task)
            refused = re.findall(r" out may not (.+)", hub.log(task))
            assert found.union(refused) == EVERYTHING

    run(scenario())
    return found


VISIBLE = ["HUB_PID", "OTHER_TASK"]


@proves("RUN-SEPARATED")
def test_agent_that_is_not_separated_reaches_what_the_hub_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = shell_agent("ada", INTRUDER, environment=VISIBLE)
    assert intrude(tmp_path / "data", section, monkeypatch) == EVERYTHING


@proves("RUN-SEPARATED", "RUN-USER")
def test_agent_with_a_user_reaches_its_own_folders_only(
    passable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = shell_agent("ada", INTRUDER, user=STRANGER, environment=VISIBLE)
    if not is_root():
        with pytest.raises(SettingsError, match="start the hub as root"):
            intrude(passable / "data", section, monkeypatch)
        return
    assert intrude(passable / "data", section, monkeypatch) == ITS_OWN


NO_ROOT = "start the hub as root"

SANDBOXES: list[dict[str, Any]] = [
    {"sandbox": "bwrap"},
    {"sandbox": "bwrap", "sandbox_network": False},
    {"sandbox": "bwrap", **({"user": STRANGER} if is_root() else {})},
]
IDS = ["sandbox", "no network", "user in a sandbox"]


@proves("RUN-SEPARATED", "RUN-SANDBOX")
@pytest.mark.parametrize("section", SANDBOXES, ids=IDS)
def test_agent_in_a_sandbox_reaches_its_own_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, section: dict[str, Any]
) -> None:
    """The data directory lies where only its user can pass."""
    settings = shell_agent("ada", INTRUDER, environment=VISIBLE, **section)
    assert intrude(tmp_path / "data", settings, monkeypatch) == ITS_OWN


@proves("RUN-USER", "RUN-ENVIRONMENT")
def test_program_of_a_user_knows_who_it_is(passable: Path) -> None:
    if not is_root():
        return
    found = pwd.getpwnam(STRANGER)
    program = REPORT + 'echo $(id -u) $(id -g) "$HOME" "$USER" "$LOGNAME" $(umask); report'

    async def scenario() -> None:
        section = shell_agent("ada", program, user=STRANGER)
        async with running_hub(passable / "data", FAST + section) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            known = f"{found.pw_uid} {found.pw_gid} {found.pw_dir} {STRANGER} {STRANGER}"
            assert f" out {known} " in hub.log(task)

    run(scenario())


@proves("RUN-USER", "RUN-STOP")
def test_program_of_a_user_is_stopped_with_its_lease(passable: Path) -> None:
    if not is_root():
        return
    trace = passable_trace(passable)

    async def scenario() -> None:
        section = shell_agent("ada", stubborn(trace), user=STRANGER)
        async with running_hub(passable / "data", FAST + section) as hub:
            task = hub.make()
            assert await asyncio.to_thread(trace.read) == b"up\n"
            hub.do(MoveTask(task, "cancelled"))
            assert await asyncio.to_thread(trace.read_to_end) == b""
            await hub.until_idle()
            assert hub.log(task).endswith("hub /bin/sh: ended by signal 9\n")

    run(scenario())
    trace.close()


@proves("RUN-USER", "DISPATCH-RESTART")
def test_program_of_a_user_is_ended_when_its_killed_hub_starts_again(passable: Path) -> None:
    if not is_root():
        return
    recover(passable, user=STRANGER)


def recover(folder: Path, *, ends_alone: bool = False, **settings: object) -> None:
    """Kill a hub while its agent works: the agent is ended, and its task is done again.

    `ends_alone`: the agent ends before another hub starts.
    """
    data, trace = folder / "data", passable_trace(folder)
    common = FAST + "[retry]\nbase_ms = 1\ncap_ms = 2\n"

    async def before() -> str:
        section = shell_agent("ada", stubborn(trace), **settings)
        async with running_hub(data, common + section, start=False) as hub:
            return hub.make()

    task = asyncio.run(before())
    with start_hub_process(data, "task.claimed") as killed:
        assert trace.read() == b"up\n"
        killed.send_signal(signal.SIGKILL)
        if ends_alone:
            assert trace.read_to_end() == b""

    async def after() -> None:
        section = shell_agent("ada", REPORT + "report", **settings)
        async with running_hub(data, common + section) as hub:
            done = await hub.until_status(task, "review")
            assert await asyncio.to_thread(trace.read_to_end) == b""
            assert (done.attempts, done.failures) == (2, 0)
            assert done.reported is not None
            assert done.reported.agent == "ada"
            requeued = [line for line in hub.lines(task) if line.event == "task.requeued"]
            assert len(requeued) == 1
            await hub.until_idle()
            assert not [*(data / "agents").iterdir()]

    run(after())
    trace.close()


def stubborn(trace: Trace) -> str:
    """A program that says that it is up, and ends by a kill only, with its child."""
    return f"trap '' TERM; exec 3>{trace.path}; echo up >&3; while :; do sleep 100; done & wait"


def passable_trace(folder: Path) -> Trace:
    """A trace that every user may write to."""
    trace = Trace(folder / "trace")
    trace.path.chmod(0o666)
    return trace


@proves("RUN-USER", "RUN-DESK")
def test_folder_is_given_with_what_comes_later_and_without_what_links_lead_to(
    tmp_path: Path,
) -> None:
    if not is_root():
        return
    user, folder, outside = find_user(STRANGER, "user"), tmp_path / "task", tmp_path / "outside"
    outside.mkdir(mode=0o700)
    for name in ("linked", "other"):
        (outside / name).write_text("the hub's")
    (folder / "inputs").mkdir(parents=True)
    (folder / "inputs/prompt.md").write_text("yours")
    (folder / "link").symlink_to(outside / "linked")
    (folder / "folder").symlink_to(outside)
    (folder / "hard").hardlink_to(outside / "other")
    give_folder(folder, user)
    disk = SafeDisk(tmp_path)
    disk.write("task/inputs/late.md", b"later")
    disk.close()
    late = (folder / "inputs/late.md").stat()
    assert (late.st_gid, stat.S_IMODE(late.st_mode)) == (user.gid, 0o640)
    assert (folder / "inputs/prompt.md").stat().st_uid == user.uid
    assert (folder.stat().st_uid, stat.S_IMODE(folder.stat().st_mode)) == (user.uid, 0o2700)
    assert {path.stat().st_uid for path in (outside, *outside.iterdir())} == {os.geteuid()}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o700


@proves("RUN-SEPARATED", "RUN-USER")
@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"user": "no-such-user"}, "this machine has no user 'no-such-user'; make one"),
        ({"user": "root"}, "root may do everything" if is_root() else NO_ROOT),
        (
            {"user": STRANGER, "repository": "/srv/app"},
            "leave out the repository" if is_root() else NO_ROOT,
        ),
        ({"user": STRANGER, "command": (), "url": "http://192.0.2.1"}, "only a command runs on"),
    ],
    ids=["unknown", "root", "worktree", "url"],
)
def test_user_that_cannot_separate_is_refused_before_the_start(
    passable: Path, section: dict[str, Any], words: str
) -> None:
    agent = msgspec.convert({"command": ("/bin/true",), **section}, AgentSettings)
    with pytest.raises(SettingsError, match=rf"^agents\.ada\.user: .*{words}"):
        check_settings(Settings(agents={"ada": agent}), passable)


@proves("RUN-SEPARATED", "RUN-USER")
def test_hub_without_root_and_a_closed_way_are_refused(
    passable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(agents={"ada": AgentSettings(command=("/bin/true",), user=STRANGER)})
    if is_root():
        closed = passable / "closed"
        closed.mkdir(mode=0o700)
        with pytest.raises(SettingsError, match=f"cannot pass through {closed} .*chmod o.x"):
            check_settings(settings, closed / "data")
        monkeypatch.setattr(os, "getegid", lambda: pwd.getpwnam(STRANGER).pw_gid)
        with pytest.raises(SettingsError, match=r"is in the group .*, which is the hub's"):
            check_settings(settings, passable)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    with pytest.raises(SettingsError, match=f"who may not start programs as {STRANGER}"):
        check_settings(settings, passable)


UNSEPARATED = "by nothing: as the hub's user, with all of its rights (docs/identity.md)"


@proves("RUN-SEPARATED")
@pytest.mark.parametrize(
    ("agents", "line"),
    [
        ({}, "the hub starts no program on this machine"),
        ({"ada": {"url": "http://192.0.2.1"}}, "the hub starts no program on this machine"),
        (
            {"ada": {"command": ("a",), "user": "swe"}, "bob": {"command": ("b",)}},
            f"ada by the user swe; bob {UNSEPARATED}",
        ),
        (
            {"eve": {"function": "m:f"}, "bob": {"command": ("b",)}},
            f"eve, bob {UNSEPARATED}",
        ),
        (
            {
                "ada": {"command": ("a",), "sandbox": "bwrap", "user": "swe"},
                "bob": {"command": ("b",), "sandbox": "bwrap", "sandbox_network": False},
            },
            "ada by the user swe in a sandbox (bwrap); bob by a sandbox (bwrap) without network",
        ),
    ],
    ids=["none", "url", "user", "nothing", "sandbox"],
)
def test_one_line_says_what_separates_agents(agents: dict[str, Any], line: str) -> None:
    settings = {name: AgentSettings(**one) for name, one in agents.items()}
    assert describe_separation(settings) == line


@proves("RUN-SANDBOX", "RUN-STOP")
@pytest.mark.parametrize("section", SANDBOXES, ids=IDS)
def test_program_in_a_sandbox_is_asked_to_end_and_nothing_of_it_is_left(
    tmp_path: Path, section: dict[str, Any]
) -> None:
    trace = passable_trace(tmp_path)
    writable = [*section.get("sandbox_writable", []), str(trace.path)]
    program = (
        f"exec 3>{trace.path}; trap 'echo asked >&3; exit 3' TERM; "
        "setsid sh -c 'while :; do sleep 100; done' & echo up >&3; wait"
    )

    async def scenario() -> None:
        agent = shell_agent("ada", program, **section, sandbox_writable=writable)
        settings = FAST.replace("stop_grace_ms = 300", "stop_grace_ms = 20000")
        async with running_hub(tmp_path / "data", settings + agent) as hub:
            task = hub.make()
            assert await asyncio.to_thread(trace.read) == b"up\n"
            hub.do(MoveTask(task, "cancelled"))
            assert await asyncio.to_thread(trace.read_to_end) == b"asked\n"
            await hub.until_idle()
            assert hub.log(task).endswith("hub /bin/sh: exit code 3\n")

    run(scenario())
    trace.close()


@proves("RUN-SANDBOX", "RUN-STOP")
def test_stubborn_program_in_a_sandbox_is_killed(tmp_path: Path) -> None:
    trace = passable_trace(tmp_path)
    section = {"sandbox": "bwrap", "sandbox_writable": [str(trace.path)]}

    async def scenario() -> None:
        agent = shell_agent("ada", stubborn(trace), **section)
        async with running_hub(tmp_path / "data", FAST + agent) as hub:
            task = hub.make()
            assert await asyncio.to_thread(trace.read) == b"up\n"
            hub.do(MoveTask(task, "cancelled"))
            assert await asyncio.to_thread(trace.read_to_end) == b""
            await hub.until_idle()

    run(scenario())
    trace.close()


@proves("RUN-SANDBOX", "DISPATCH-RESTART")
@pytest.mark.parametrize("section", SANDBOXES, ids=IDS)
def test_program_in_a_sandbox_ends_with_its_hub_and_is_recovered(
    tmp_path: Path, section: dict[str, Any]
) -> None:
    recover(tmp_path, **section, sandbox_writable=[str(tmp_path / "trace")], ends_alone=True)


@proves("RUN-SANDBOX")
def test_sandbox_shows_what_its_section_names_and_no_secret_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/secret").write_text("secret")
    shown, given = tmp_path / "shown", tmp_path / "given"
    for folder in (shown, given):
        folder.mkdir()
        (folder / "file").write_text("text")
    (shown / "hub.key").write_text("the hub's key")
    (given / "data").mkdir(mode=0o700)
    program = (
        REPORT
        + f"""
may 'read what is shown' "grep text {shown}/file"
may 'change what is shown' "echo x > {shown}/file"
may 'change what is given' "echo x > {given}/file"
may 'read the key of the hub' "grep key {shown}/hub.key"
may 'read the settings of the hub' "grep notify {shown}/settings.toml"
may 'read a file elsewhere' "cat {tmp_path}/elsewhere"
may 'see the data directory in a folder that is given' "cat {given}/data/dragoman.toml"
may 'write to its home' 'echo x > "$HOME/x" && cat "$HOME/x"'
may 'read the home of the hub' 'cat "$HOME/secret"'
may 'see a process of the hub' 'test $(ls -d /proc/[0-9]* | wc -l) -gt 12'
may 'take rights' 'grep "CapEff:.*[1-9a-f]" /proc/self/status'
report
"""
    )
    (tmp_path / "elsewhere").write_text("text")
    section = shell_agent(
        "ada",
        program,
        sandbox="bwrap",
        sandbox_readable=[str(shown)],
        sandbox_writable=[str(given)],
    )
    (shown / "settings.toml").write_text("[notify]")
    key = f"[notify]\nwebhook_secret_file = {json.dumps(str(shown / 'hub.key'))}\n"

    async def scenario() -> None:
        settings = shown / "settings.toml"
        async with running_hub(given / "data", FAST + key + section, config=settings) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            assert set(re.findall(r" out may (?!not )(.+)", hub.log(task))) == {
                "read what is shown",
                "change what is given",
                "write to its home",
            }

    run(scenario())
    assert (given / "file").read_text() == "x\n"


@proves("RUN-SANDBOX")
@pytest.mark.parametrize("has_network", [True, False])
def test_sandbox_keeps_or_cuts_the_network(tmp_path: Path, has_network: bool) -> None:
    own_network = str(Path("/proc/self/ns/net").readlink())
    program = REPORT + 'echo net "$(readlink /proc/self/ns/net)"; report'
    section = shell_agent("ada", program, sandbox="bwrap", sandbox_network=has_network)

    async def scenario() -> None:
        async with running_hub(tmp_path / "data", FAST + section) as hub:
            task = hub.make()
            await hub.until_status(task, "review")
            (network,) = re.findall(r" out net (.+)", hub.log(task))
            assert (network == own_network) is has_network

    run(scenario())


def make_repository(path: Path) -> None:
    for words in (
        ["init", "-q", str(path)],
        ["-C", str(path), "config", "user.email", "a@example.org"],
        ["-C", str(path), "config", "user.name", "A"],
        ["-C", str(path), "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *words], check=True)


@proves("RUN-SANDBOX", "RUN-WORKTREE")
@pytest.mark.parametrize("is_inside", [False, True])
def test_agent_in_a_sandbox_commits_and_changes_nothing_else_of_the_repository(
    tmp_path: Path, is_inside: bool
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    repository = (data if is_inside else tmp_path) / "app"
    make_repository(repository)
    (repository / "checked-out").write_text("mine")
    program = (
        REPORT
        + f"""
git={repository}/.git
own=$(git rev-parse --absolute-git-dir)
may 'commit' 'echo x > file && git add file && git commit -qm second'
may 'configure the repository' 'git config core.fsmonitor /bin/sh'
may 'replace the settings' "mv $git/config $git/c"
may 'add a hook' "echo x > $git/hooks/post-merge"
may 'move another branch' "git update-ref refs/heads/other HEAD"
may 'name another repository' 'echo "gitdir: /tmp" > .git'
may 'replace its link' 'mv .git x'
may 'replace the common folder' "echo /tmp > $own/commondir"
may 'replace its folder' "mv $own $own-x"
may 'add settings of its own' "echo x > $own/config.worktree"
may 'read the files of the repository' "cat {repository}/checked-out"
report
"""
    )
    section = shell_agent("ada", program, sandbox="bwrap", repository=str(repository))

    async def scenario() -> None:
        async with running_hub(data, FAST + section) as hub:
            task = hub.make()
            done = await hub.until_status(task, "review")
            assert re.findall(r" out may (?!not )(.+)", hub.log(task)) == ["commit"]
            branches.append(f"dragoman/{done.aof_id}")

    branches = list[str]()
    run(scenario())
    log = ["git", "-C", str(repository), "log", "-1", "--format=%s", *branches]
    assert subprocess.run(log, check=True, capture_output=True).stdout == b"second\n"


@proves("RUN-SANDBOX", "RUN-WORKTREE")
def test_git_of_the_hub_follows_no_link_out_of_the_sandbox(tmp_path: Path) -> None:
    """The first attempt leaves a link where git appends a line when the next one begins."""
    repository, victim = tmp_path / "app", tmp_path / "victim"
    make_repository(repository)
    victim.write_text("untouched")
    half = ["git", "-C", str(repository), "commit-tree", "-p", "HEAD", "-m", "half", "HEAD^{tree}"]
    commit = subprocess.run(half, check=True, capture_output=True, text=True).stdout.strip()
    program = (
        REPORT
        + f"""
test -e {victim} && exit 1
own=$(git rev-parse --absolute-git-dir)
if test -L "$own/logs/HEAD"; then git log -1 --format=%s; report; else
  rm "$own/logs/HEAD"; ln -s {victim} "$own/logs/HEAD"; exit 1
fi
"""
    )
    section = shell_agent("ada", program, sandbox="bwrap", repository=str(repository))

    async def scenario() -> None:
        settings = FAST + "[retry]\nbase_ms = 3600000\ncap_ms = 3600000\n"
        async with running_hub(tmp_path / "data", settings + section) as hub:
            task = hub.make()
            await hub.until(lambda: hub.task(task).failures > 0)
            hub.do(CheckpointTask(task, "RESUME", commit))
            hub.do(MoveTask(task, "backlog"), MoveTask(task, "ready"))
            await hub.until_status(task, "review")

    run(scenario())
    assert victim.read_text() == "untouched"


@proves("RUN-SEPARATED", "RUN-SANDBOX")
@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"sandbox": "bwrap", "command": (), "url": "http://192.0.2.1"}, "sandbox: only a command"),
        ({"sandbox_network": False}, 'sandbox_network needs sandbox = "bwrap"'),
        ({"sandbox_readable": ["/usr"]}, 'sandbox_readable needs sandbox = "bwrap"'),
        ({"sandbox": "bwrap", "sandbox_writable": ["/no/such"]}, "/no/such does not exist"),
        ({"sandbox": "bwrap", "sandbox_readable": ["/"]}, "/ shows the hub's processes"),
        ({"sandbox": "bwrap", "sandbox_writable": ["/proc/1"]}, "shows the hub's processes"),
        ({"sandbox": "bwrap", "sandbox_readable": ["etc"]}, "etc is no absolute path"),
        ({"sandbox": "bwrap", "user": "no-such-user"}, "this machine has no user"),
    ],
    ids=["url", "network", "paths", "missing", "root", "processes", "relative", "user"],
)
def test_sandbox_with_wrong_settings_is_refused(
    tmp_path: Path, section: dict[str, Any], words: str
) -> None:
    agent = msgspec.convert({"command": ("/bin/true",), **section}, AgentSettings)
    with pytest.raises(SettingsError, match=rf"^agents\.ada\..*{words}"):
        check_settings(Settings(agents={"ada": agent}), tmp_path)


@proves("RUN-SEPARATED", "RUN-SANDBOX")
def test_other_name_of_the_folder_around_the_data_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "home")
    shown = (str(tmp_path / "link"),)
    agents = {"ada": AgentSettings(command=("/bin/true",), sandbox="bwrap", sandbox_readable=shown)}
    with pytest.raises(SettingsError, match=r"link leads to .*home, where the hub's own files are"):
        check_settings(Settings(agents=agents), tmp_path / "home" / "data")


@proves("RUN-SEPARATED", "RUN-SANDBOX")
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "there is no bwrap on the PATH: install it .*apt-get install bubblewrap"),
        ("echo bwrap: No permissions to create new namespace; exit 1", "No permissions to create"),
        ("exit 1", "make no sandbox: exit code 1.*unprivileged user namespaces"),
    ],
    ids=["not installed", "not permitted", "silent"],
)
def test_machine_without_sandboxes_is_refused_and_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    if script:
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    agents = {"ada": AgentSettings(command=("/bin/true",), sandbox="bwrap")}
    with pytest.raises(SettingsError, match=rf"^agents\.ada\.sandbox: .*{words}"):
        check_settings(Settings(agents=agents), tmp_path)


@proves("RUN-SEPARATED", "HUB-UP")
def test_open_data_directory_that_cannot_be_closed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o750)

    def refuse(_: Path, __: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "chmod", refuse)
    (told,) = restrict_directory(tmp_path, [])
    assert told.endswith(
        "and still can: Operation not permitted; its owner has to run `chmod 700 " + f"{tmp_path}`"
    )
