"""Hostile text in every field of an agent: it is shown, and nothing of it runs."""

import json
import shlex
import subprocess
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.e2e.hub_process import wait_for_event
from tests.e2e.program import Program
from tests.protocols.acp.hub import offer
from tests.protocols.saop.hub import completed, event, invoked, pulse, thought
from tests.requirements import proves
from tests.web.browser import Visit, visit
from tests.web.fleet import Fleet, running_fleet

HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    '"><svg/onload=window.hacked=1> [link](javascript:window.hacked=1) '
    "![image](https://attacker.invalid/pixel.png) </title><style>body{display:none}</style>"
)
TURNED = "\u202egnp.exe"
"""Text that is shown from right to left, unless somebody stops it."""
TERMINAL = "\x1b]0;title\x07\x1b[31mred\x1b[0m \u202egnp.exe\u202c"


def plant(fleet: Fleet) -> str:
    """Put hostile text into every field that an agent can write; return the handoff's id."""
    text = f"{HOSTILE} {TERMINAL}"
    fleet.create("hostile", f"{HOSTILE} {TURNED}", body=text)
    fleet.act("hostile", "claim", "ada", agent="ada", session="hostile")
    fleet.act("hostile", "note", "ada", text=text)
    fleet.act("hostile", "update", "ada", progress=text)
    fleet.act("hostile", "ask", "ada", text=text)
    trace = (thought(text), invoked("c", command=text), pulse(text), completed("c"))
    for number, payload in enumerate(trace, start=1):
        fleet.call("/v1/saop/saop.event", event(number, payload, "hostile"), "ada")
    fleet.create("given-up", f"{HOSTILE} {TURNED}", max_attempts=1)
    fleet.claim("given-up", "ben")
    fleet.act("given-up", "fail", "ben", notes=text)
    fleet.create("stuck", HOSTILE)
    fleet.claim("stuck", "ben")
    fleet.act("stuck", "block", "ben", blockers=[text])
    fleet.call("/v1/agents/cyd/pause", {"reason": text})
    letter = {"to": ["owner"], "subject": HOSTILE, "body_md": text, "thread_id": "hostile"}
    fleet.call("/v1/agentmail/mail.send", letter, "ada")
    fleet.create("handed", HOSTILE, assignee="ada")
    message = offer("ben", "handed", policy={"requires_human_approval": True})
    message["task"] |= {"title": HOSTILE, "objective": text}
    return fleet.call("/v1/acp/acp_handoff", message, "ada")["handoff_id"]


@proves("WEB-SAFE-TEXT")
def test_hostile_text_is_shown_and_does_nothing(browser: Browser, empty_fleet: Fleet) -> None:
    fleet = empty_fleet
    handoff = plant(fleet)
    letter = fleet.call("/v1/agentmail/mail.inbox", {})["messages"][-1]["id"]
    paths = (
        "/",
        "/board?task=hostile",
        "/tasks/hostile",
        "/tasks/hostile?tab=entries",
        "/tasks/hostile?tab=terminal",
        f"/tasks/hostile?at={fleet.call('/v1/status')['position']}",
        "/board?words=window.hacked",
        "/tasks/given-up",
        f"/handoffs/{handoff}",
        "/agents/cyd",
        f"/inbox?letter={letter}",
        "/ledger",
    )
    with visit(browser, fleet) as visited:
        for path in paths:
            check_harmless(visited, visited.go(path))


STEERS = r"/[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]/"
"""Expression for characters of terminals and those that turn the direction of others' text."""


def check_harmless(visited: Visit, page: Page) -> None:
    """Check that the hostile text is shown on a page, and that nothing of it works."""
    expect(page.get_by_role("main")).to_contain_text("window.hacked=1")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main style, main iframe").count() == 0
    steering = page.evaluate(f"{STEERS}.exec(document.documentElement.outerHTML)?.input.length")
    assert steering is None, "a character that steers is in the page"
    assert page.locator("main img").count() == 0
    assert page.locator("a[href^='javascript:']").count() == 0
    visited.check()


NAME = "<img src=x onerror=window.hacked=1>.txt"
"""Name of a file that an agent commits, and of one that it leaves uncommitted."""

SCRIPT = f"""
set -e
text={shlex.quote(HOSTILE)}
printf '%s\\033[31m\\n' "$text" | tee '{NAME}'
git add .
git -c user.name=ada -c user.email=ada@example.invalid commit -qm "$text"
echo "$text" > 'not committed {NAME}'
"""


@proves("WEB-SAFE-TEXT", "WEB-PAGES")
def test_hostile_file_names_and_lines_are_shown_in_diff_and_terminal(
    browser: Browser, program: Program, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    person = ("-c", "user.name=mia", "-c", "user.email=mia@example.invalid")
    subprocess.run(("git", "init", "-q", "-b", "main", str(repository)), check=True)
    first = ("git", "-C", str(repository), *person, "commit", "-qm", "first", "--allow-empty")
    subprocess.run(first, check=True)
    program.prepare("agent", "add", "eve")
    command = json.dumps(["sh", "-c", SCRIPT])
    settings = f'[agents.eva]\ncommand = {command}\nrepository = "{repository}"\n'
    (program.data / "dragoman.toml").write_text(settings)
    program.prepare("task", "create", "Write", "--id", "T-1", "--ready", "--assignee", "eva")
    with running_fleet(program) as fleet:
        wait_for_event(program, "T-1", lambda one: one["body"].get("to") in ("review", "ready"))
        with visit(browser, fleet) as visited:
            page = visited.go("/tasks/T-1?tab=diff")
            diff = page.get_by_role("group", name="Diff")
            expect(diff).to_contain_text(f"+++ b/{NAME}")
            expect(diff).to_contain_text(f"not committed {NAME}")
            check_harmless(visited, page)
            check_harmless(visited, visited.go("/tasks/T-1?tab=terminal"))
