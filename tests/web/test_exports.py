"""Exported pages in a browser, opened from disk without a hub."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.requirements import proves
from tests.web.fleet import Fleet

HOSTILE = "<img src=http://127.0.0.1:9/x onerror=document.title='owned'><script>1</script>"


@proves("SEE-EXPORT")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_open_without_a_hub_and_ask_for_nothing(
    browser: Browser, fleet: Fleet, tmp_path: Path, theme: str
) -> None:
    task = fleet.create(f"exported-{theme}", HOSTILE)
    fleet.claim(task, "ada")
    fleet.act(task, "complete", "ada", notes=HOSTILE)
    fleet.act(task, "approve")
    pages = {
        f"{task}: ": ("story", task, "--html", f"{tmp_path / 'story.html'}"),
        "Report of ": ("report", "--html", f"{tmp_path / 'day.html'}"),
    }
    colours = set[str]()
    for title, command in pages.items():
        assert fleet.program.run(*command).code == 0
        context = browser.new_context(
            color_scheme="dark" if theme == "dark" else "light", offline=True
        )
        page = context.new_page()
        requests = list[str]()
        page.on("request", lambda request, seen=requests: seen.append(request.url))
        page.goto(f"file://{command[-1]}")
        heading = page.get_by_role("heading", level=1).inner_text()
        assert heading.startswith(title)
        assert page.get_by_text("<img src=http").first.is_visible()
        assert page.title() == heading
        assert requests == [f"file://{command[-1]}"]
        colours.add(page.evaluate("getComputedStyle(document.body).color"))
        context.close()
    assert colours == {"rgb(0, 0, 0)" if theme == "light" else "rgb(255, 255, 255)"}
