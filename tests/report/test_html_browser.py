"""The HTML pages in a real browser: how they begin, sorting, filters, maps by mouse and keyboard,
marked words, arms of several seeds, dark mode, phone width."""

import json
from itertools import pairwise

import pytest

from tests.report.browsing import (
    CONTRAST,
    ActionChains,
    By,
    Keys,
    Select,
    WebDriverWait,
    every,
    focused,
    one,
    show,
)
from tests.report.html_reports import NO_MAP, make_report
from tests.report.test_html import HOSTILE, payload

pytestmark = pytest.mark.browser

NUM_SENTENCES = 60
RUNS = ("additive", "a-run-with-a-name-of-many-words-and-numbers-2026")
SEEDS = ("additive-s1", "additive-s2", "none-s1", "none-s2")


def write_page(tmp_path_factory, names, **options):
    """Its address, the report, and the data inside the page."""
    page, report = make_report(NUM_SENTENCES, names, **options)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, "utf-8")
    return path.as_uri(), json.loads(json.dumps(report.data)), payload(page)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two runs on two sets; sentence 3 looks like markup."""
    options = {"hostile": HOSTILE, "num_validations": (20, 5)}
    return write_page(tmp_path_factory, RUNS, sets=("flickr", "coco"), **options)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two arms of two seeds each."""
    arms = ("additive", "additive", "none", "none")
    return write_page(tmp_path_factory, SEEDS, arms=arms, without_maps=(2, 3))


@pytest.fixture
def shown(browser, report):
    """The data of the report, which the browser shows."""
    address, _, inside = report
    show(browser, address)
    return inside


def within(node, selector):
    return node.find_elements(By.CSS_SELECTOR, selector)


def texts(nodes):
    return [node.get_attribute("textContent") for node in nodes]


def text_of(browser, selector):
    return one(browser, selector).text


def numbers_shown(browser):
    rows = every(browser, "#sentence-rows tr[data-row]")
    return [int(row.get_attribute("data-row")) for row in rows]


def is_open(browser):
    return browser.execute_script("return document.querySelector('dialog').open")


def columns_of_text(inside):
    sentences = inside["sentences"]
    return [sentences["source"], sentences["reference"], *sentences["hypotheses"]]


def map_tokens(inside, run, row):
    """Source and target tokens of a map."""
    source, target, *_ = inside["sentences"]["maps"][run][row]
    return inside["tokens"][source], inside["tokens"][target]


def test_it_begins_with_the_finding_and_a_map(browser, report, shown):
    assert text_of(browser, "h1") == f"German to English: {RUNS[0]} and {RUNS[1]}"
    assert text_of(browser, "#top .quiet").startswith("120 sentence pairs of flickr and coco; ")
    assert text_of(browser, "#conclusion") == report[1]["conclusion"]
    assert every(browser, "main section")[0].get_attribute("id") == "example"
    assert text_of(browser, "#map-note") == shown["map_note"]
    row = shown["example"]["row"]
    sides = [lines[row] for lines in columns_of_text(shown)]
    assert texts(every(browser, "#example dd > bdi")) == sides
    text = one(browser, "#example .beside-text").rect
    picture = one(browser, "#example .map").rect
    assert picture["x"] >= text["x"] + text["width"]  # beside it, not below


def test_pointing_at_a_cell_points_at_the_words(browser, shown):
    source, target = map_tokens(shown, **shown["example"])
    canvas = one(browser, "#example .map-grid svg")
    size = canvas.size["width"] / len(source)
    across = 2.5 * size - canvas.size["width"] / 2
    down = 1.5 * size - canvas.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, round(across), round(down)).perform()
    pointed = [source[2], target[1]]
    assert texts(every(browser, "#example dd .pointed")) == pointed
    labels = every(browser, "#example .map-top .pointed, #example .map-left .pointed")
    assert texts(labels) == pointed
    assert text_of(browser, "#example .readout").startswith(f"{pointed[1]} looks at {pointed[0]}")
    ActionChains(browser).move_to_element(one(browser, "h1")).perform()
    assert every(browser, "#example .pointed") == []


def test_markup_in_a_sentence_is_text(browser, shown):
    one(browser, "#filter-text").send_keys("onerror=alert")
    [row] = every(browser, "#sentence-rows tr")
    assert texts(within(row, "dd > bdi")) == [HOSTILE] * 4
    assert every(browser, "#main script, #main img") == []


def test_sorting(browser, shown):
    scores = shown["sentences"]["chrf"][1]
    rows = range(2 * NUM_SENTENCES)
    one(browser, 'th[data-key="chrf-1"] button').click()
    assert one(browser, 'th[data-key="chrf-1"]').get_attribute("aria-sort") == "ascending"
    assert numbers_shown(browser) == sorted(rows, key=lambda row: (scores[row], row))[:50]
    assert focused(browser).find_element(By.XPATH, "..").get_attribute("data-key") == "chrf-1"
    focused(browser).send_keys(Keys.ENTER)
    assert one(browser, 'th[data-key="chrf-1"]').get_attribute("aria-sort") == "descending"
    falling = sorted(rows, key=lambda row: (-scores[row], row))
    assert numbers_shown(browser) == falling[:50]
    assert len(every(browser, 'th[data-key][aria-sort="none"]')) == 5
    one(browser, "#sentence-more").click()
    assert numbers_shown(browser) == falling
    assert not one(browser, "#sentence-more").is_displayed()


def test_filtering(browser, report, shown):
    assert text_of(browser, "#sentence-count") == "120 of 120 sentences"
    bucket = report[1]["sets"][-1]["buckets"][1]
    Select(one(browser, "#filter-bucket")).select_by_index(2)
    assert text_of(browser, "#sentence-count") == f"{bucket['num_pairs']} of 120 sentences"
    Select(one(browser, "#set")).select_by_index(1)  # another set, every length again
    assert text_of(browser, "#sentence-count") == "60 of 120 sentences"
    assert min(numbers_shown(browser)) == NUM_SENTENCES
    one(browser, "#filter-text").send_keys("MEADOW")
    with_word = []
    for row in range(60, 120):
        if any("meadow" in lines[row].lower() for lines in columns_of_text(shown)):
            with_word.append(row)
    assert numbers_shown(browser) == with_word[:50]
    one(browser, "#filter-differing").click()
    first, second = shown["sentences"]["hypotheses"]
    num_differing = sum(first[row] != second[row] for row in with_word)
    assert text_of(browser, "#sentence-count") == f"{num_differing} of 120 sentences"
    one(browser, "#filter-text").send_keys("no such words")
    assert numbers_shown(browser) == []


def test_a_map_by_mouse(browser, shown):
    every(browser, ".map-button")[4].click()
    assert is_open(browser)
    assert text_of(browser, "#viewer-title").startswith("Sentence 5")
    for side, tokens in zip(("top", "left"), map_tokens(shown, 0, 4), strict=True):
        labels = every(browser, f"dialog .map-{side} span")
        assert [label.get_attribute("title") for label in labels] == tokens
    one(browser, "#viewer-next").click()
    assert text_of(browser, "#viewer-title").startswith("Sentence 6")
    one(browser, "#viewer-run-1").click()
    assert f"{RUNS[1]}: {NO_MAP}" in text_of(browser, "dialog")
    assert one(browser, "#viewer-run-1").get_attribute("aria-pressed") == "true"
    one(browser, "#viewer-close").click()
    assert not is_open(browser)
    one(browser, '#sentence-rows tr[data-row="7"] td:first-child').click()  # anywhere on a row
    assert text_of(browser, "#viewer-title").startswith("Sentence 8")


def test_a_map_by_keyboard(browser, shown):
    button = every(browser, ".map-button")[1]
    browser.execute_script("arguments[0].focus()", button)
    focused(browser).send_keys(Keys.ENTER)
    assert is_open(browser)
    assert focused(browser).get_attribute("id") == "viewer-close"
    for _ in range(5):  # two runs, and the scrolling box may take the focus too
        focused(browser).send_keys(Keys.TAB)
        if focused(browser).tag_name == "svg":
            break
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN):
        focused(browser).send_keys(key)
    source, target = map_tokens(shown, 0, 1)
    said = text_of(browser, "dialog .readout")
    assert said.startswith(f"{target[1]} looks at {source[1]}: 0.")
    focused(browser).send_keys(Keys.ESCAPE)
    assert not is_open(browser)
    assert focused(browser) == button


def test_every_control_has_a_name(browser, shown):
    controls = every(browser, "button, select, input, [role=region]")
    assert all(control.accessible_name for control in controls if control.is_displayed())
    every(browser, ".map-button")[0].click()
    viewer = every(browser, "dialog button, dialog .map-grid svg")
    assert len(viewer) == 6
    assert all(control.accessible_name for control in viewer)


def test_headings_leave_out_no_level(browser, shown):
    levels = [int(heading.tag_name[1]) for heading in every(browser, "h1, h2, h3")]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("name", ["length-table", "attention-table", "significance-table"])
def test_a_table_on_a_phone_scrolls_under_its_first_column(browser, report, name):
    show(browser, report[0], width=390, height=844)
    box = one(browser, f"#{name}").find_element(By.XPATH, "..")

    def fades(_=None):
        return "has-more" in box.get_attribute("class")

    browser.execute_script("arguments[0].scrollIntoView()", box)
    WebDriverWait(browser, 10).until(fades)
    assert box.value_of_css_property("mask-image") != "none"
    values = [cell.rect for cell in within(box, "tbody tr:first-child td.number")]
    assert min(rect["x"] + rect["width"] for rect in values) <= 390  # one is seen whole
    first = within(box, "tbody th")[0]
    left = first.rect["x"]
    browser.execute_script("arguments[0].scrollLeft = arguments[0].scrollWidth", box)
    WebDriverWait(browser, 10).until_not(fades)
    assert first.rect["x"] == left  # it sticks


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_contrast_and_width(browser, seeds, report, width, scheme):
    fits = "return document.documentElement.scrollWidth <= window.innerWidth"
    for address in (seeds[0], report[0]):
        show(browser, address, width=width, height=900, scheme=scheme)
        assert browser.execute_script(fits)
        assert browser.execute_script(CONTRAST) == []
