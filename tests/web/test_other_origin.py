"""A page of another origin in the same browser, in which the owner is signed in."""

from playwright.sync_api import Browser, Route

from tests.requirements import proves
from tests.web.browser import visit
from tests.web.fleet import Fleet

ATTACK = """async (hub) => {
  const told = [];
  const send = (path, more) => fetch(hub + path, {credentials: "include", ...more}).then(
    async (answer) => told.push(await answer.text()),
    () => told.push("refused"),
  );
  const body = JSON.stringify({title: "planted"});
  await send("/v1/status", {});
  await send("/v1/tasks", {method: "POST", body, headers: {"Content-Type": "application/json"}});
  await send("/v1/tasks", {method: "POST", body, headers: {"Dragoman-Page": "1"}});
  await send("/v1/tasks", {method: "POST", body, mode: "no-cors"});
  const form = document.createElement("form");
  form.action = hub + "/v1/tasks";
  form.method = "post";
  form.target = "frame";
  const frame = document.createElement("iframe");
  frame.name = "frame";
  document.body.append(form, frame);
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
  form.submit();
  await loaded;
  const embedded = document.createElement("iframe");
  embedded.src = hub + "/board";
  const shown = new Promise((resolve) => embedded.addEventListener("load", resolve));
  document.body.append(embedded);
  await shown;
  return told;
}"""


def answer_as_attacker(route: Route) -> None:
    """Answer with an empty page of the attacker."""
    route.fulfill(content_type="text/html", body="<!doctype html><title>attacker</title>")


@proves("HTTP-SESSION")
def test_page_of_another_origin_reads_and_changes_nothing(browser: Browser, fleet: Fleet) -> None:
    with visit(browser, fleet) as visited:
        before = fleet.call("/v1/status")["position"]
        other = visited.context.new_page()
        other.route("http://attacker.localhost/**", answer_as_attacker)
        other.goto("http://attacker.localhost/")
        told = other.evaluate(ATTACK, fleet.url)
        assert told == ["refused"] * 4
        embedded = [frame for frame in other.frames if frame.url.endswith("/board")]
        assert embedded == [], "the dashboard let itself be embedded"
        entries = fleet.call(f"/v1/events?after={before}")["events"]
        assert [one for one in entries if one["actor"] != "system:hub"] == []
