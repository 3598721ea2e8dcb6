"""The site builds without a warning, every link in it leads somewhere, and it loads nothing from
elsewhere."""

import re
import resource
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import seq2seq_attn
from scripts.laboratory.pages import site as pages
from seq2seq_attn.cli import COMMANDS

LOADING = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "object": "data",
}


class Page(HTMLParser):
    """The links, the loaded addresses and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links = set()
        self.loaded = set()
        self.anchors = {""}
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.add(values[LOADING[tag]])
        if tag == "a" and "href" in values:
            self.links.add(values["href"])


@pytest.fixture(scope="module")
def folder(module_path):
    folder = module_path / "site"
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert pages.build(folder) == 0
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 60.0
    return folder


@pytest.fixture(scope="module")
def html(folder):
    return {path: Page(path) for path in folder.rglob("*.html") if path.name != "demo.html"}


def test_every_link_leads_to_a_page_and_an_anchor(html, folder):
    assert len(html) > 25
    broken = []
    for path, page in html.items():
        for link in page.links | page.loaded:
            url = urlsplit(link)
            if url.scheme:
                assert url.scheme in ("https", "http", "data", "mailto"), link
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchors = html[target].anchors if target in html else {"", unquote(url.fragment)}
            if not target.exists() or not {unquote(url.fragment), url.fragment} & anchors:
                broken.append(f"{path.relative_to(folder)}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(html, folder):
    for path, page in html.items():
        assert [url for url in page.loaded if urlsplit(url).netloc] == [], path
    for path in folder.rglob("*.css"):
        assert (
            re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", path.read_text("utf-8"))
            == []
        ), path


def test_the_site_has_course_reference_and_search(html, folder):
    for chapter in pages.chapters():
        assert folder / "docs" / "learn" / f"{chapter.stem}.html" in html
    names = [name for name in seq2seq_attn.__all__ if not name.startswith("_")]
    public = {f"seq2seq_attn.{name}" for name in names}
    assert public - html[folder / "docs" / "api.html"].anchors == set()
    assert {*COMMANDS} <= html[folder / "docs" / "commands.html"].anchors
    assert "attention" in (folder / "searchindex.js").read_text("utf-8")
