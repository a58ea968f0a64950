"""The files of the dashboard: who gets them, and under which policy."""

import gzip
from pathlib import Path

import pytest

from dragoman.surfaces.http.app import describe_api
from dragoman.surfaces.http.dashboard import PAGES, Dashboard, load_dashboard
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

SCRIPT = b"console.log('the page')" * 100


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """Make a folder as Vite builds it."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(b"<!doctype html><title>the page</title>")
    (tmp_path / "icon.svg").write_bytes(b"<svg/>")
    (tmp_path / "assets" / "index-abc.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "font-abc.woff2").write_bytes(b"font")
    return tmp_path


@proves("WEB-FILES")
def test_pages_are_served_without_a_token_under_a_strict_policy(server: HubServer) -> None:
    for path in ("/", "/board", "/tasks/any/name", "/sign-in"):
        response = server.request("GET", path, by="")
        assert response.status == 200
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert response.headers["x-content-type-options"] == "nosniff"


@proves("WEB-FILES")
def test_pages_are_only_read(server: HubServer) -> None:
    response = server.request("POST", "/board", {}, by="")
    assert (response.status, response.code) == (405, "method_not_allowed")


@proves("WEB-FILES")
def test_no_page_stands_at_a_path_of_the_api(server: HubServer) -> None:
    paths = {path.split("/")[1] for path in describe_api(server.deps.router.dialects)["paths"]}
    assert not paths & PAGES


@proves("WEB-FILES")
def test_assets_are_kept_by_browsers_and_the_page_is_asked_for_again(built: Path) -> None:
    files = load_dashboard(built)
    assert set(files) == {"/", "/icon.svg", "/assets/index-abc.js", "/assets/font-abc.woff2"}
    assert [path for path, file in files.items() if file.is_immutable] == [
        "/assets/font-abc.woff2",
        "/assets/index-abc.js",
    ]
    script = files["/assets/index-abc.js"]
    assert gzip.decompress(script.compressed) == script.content == SCRIPT
    assert files["/assets/font-abc.woff2"].compressed == b""


@proves("WEB-FILES")
def test_unchanged_page_is_not_sent_again_and_is_compressed(server: HubServer) -> None:
    first = server.request("GET", "/", by="")
    again = server.request("GET", "/", by="", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    small = server.request("GET", "/", by="", headers={"Accept-Encoding": "gzip, br"})
    assert small.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small.body) == first.body


@proves("WEB-FILES")
def test_page_says_how_to_build_the_dashboard_where_it_is_not_built(tmp_path: Path) -> None:
    files = load_dashboard(tmp_path)
    assert b"uv sync --reinstall-package dragoman" in files["/"].content
    assert Dashboard(files).serves("/board")
