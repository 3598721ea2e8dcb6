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
from tests.report.html_reports import make_report
from tests.report.test_html import HOSTILE, payload

pytestmark = pytest.mark.browser

NUM_SENTENCES = 60
RUNS = ("additive", "a-run-with-a-name-of-many-words-and-numbers-2026")
SEEDS = ("additive-s1", "additive-s2", "none-s1", "none-s2")


def write_page(tmp_path_factory, *arguments, **options):
    """Its address, the report, and the data inside the page."""
    page, report = make_report(NUM_SENTENCES, *arguments, analyzed=True, **options)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri(), json.loads(json.dumps(report.data)), payload(page)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two runs on two sets; sentence 3 looks like markup; of sentence 5 two source words are
    unknown."""
    return write_page(
        tmp_path_factory,
        RUNS,
        sets=("flickr", "coco"),
        texts={2: HOSTILE},
        without_maps=(1,),
        unknown={4: (0, 2)},
        validations=(20, 5),
    )


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two arms of two seeds each."""
    arms = tuple(run.partition("-")[0] for run in SEEDS)
    return write_page(tmp_path_factory, SEEDS, arms=arms, without_maps=(2, 3))


def within(node, selector):
    return node.find_elements(By.CSS_SELECTOR, selector)


def texts(nodes):
    return [node.get_attribute("textContent") for node in nodes]


def numbers_shown(browser):
    return [
        int(row.get_attribute("data-row")) for row in every(browser, "#sentence-rows tr[data-row]")
    ]


def header(browser, key):
    return one(browser, f'th[data-key="{key}"]')


def is_open(browser):
    return browser.execute_script("return document.querySelector('dialog').open")


def test_it_begins_with_the_finding_and_a_map(browser, report):
    address, data, inside = report
    show(browser, address)
    assert one(browser, "h1").text == f"German to English: {RUNS[0]} and {RUNS[1]}"
    assert one(browser, "#top .quiet").text.startswith("120 sentence pairs of flickr and coco; ")
    assert one(browser, "#conclusion").text == data["conclusion"]
    assert every(browser, "main section")[0].get_attribute("id") == "example"
    example, row = one(browser, "#example"), inside["example"]["row"]
    assert one(browser, "#map-note").text == inside["map_note"]
    sentences = inside["sentences"]
    sides = [sentences["source"], sentences["reference"], *sentences["hypotheses"]]
    assert texts(within(example, "dd > bdi")) == [lines[row] for lines in sides]
    text, picture = within(example, ".beside-text")[0].rect, within(example, ".map")[0].rect
    assert picture["x"] >= text["x"] + text["width"]  # beside it, not below


def test_pointing_at_a_cell_points_at_the_words(browser, report):
    address, _, inside = report
    show(browser, address)
    example = inside["example"]
    source, target, *_ = inside["sentences"]["maps"][example["run"]][example["row"]]
    canvas = one(browser, "#example canvas[tabindex]")
    size = canvas.size["width"] / len(inside["tokens"][source])
    across, down = 2.5 * size - canvas.size["width"] / 2, 1.5 * size - canvas.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, round(across), round(down)).perform()
    pointed = [inside["tokens"][source][2], inside["tokens"][target][1]]
    assert texts(every(browser, "#example dd .pointed")) == pointed
    assert (
        texts(every(browser, "#example .map-top .pointed, #example .map-left .pointed")) == pointed
    )
    assert one(browser, "#example .readout").text.startswith(f"{pointed[1]} looks at {pointed[0]}")
    ActionChains(browser).move_to_element(one(browser, "h1")).perform()
    assert every(browser, "#example .pointed") == []


def test_markup_in_a_sentence_is_text(browser, report):
    show(browser, report[0])
    one(browser, "#filter-text").send_keys("onerror=alert")
    [row] = every(browser, "#sentence-rows tr")
    assert texts(within(row, "dd > bdi")) == [HOSTILE] * 4
    assert every(browser, "#main script, #main img") == []


def test_sorting(browser, report):
    address, _, inside = report
    show(browser, address)
    scores, rows = inside["sentences"]["chrf"][1], range(2 * NUM_SENTENCES)
    header(browser, "chrf-1").find_element(By.TAG_NAME, "button").click()
    assert header(browser, "chrf-1").get_attribute("aria-sort") == "ascending"
    assert numbers_shown(browser) == sorted(rows, key=lambda row: (scores[row], row))[:50]
    assert focused(browser).find_element(By.XPATH, "..").get_attribute("data-key") == "chrf-1"
    focused(browser).send_keys(Keys.ENTER)
    assert header(browser, "chrf-1").get_attribute("aria-sort") == "descending"
    falling = sorted(rows, key=lambda row: (-scores[row], row))
    assert numbers_shown(browser) == falling[:50]
    assert [cell.get_attribute("aria-sort") for cell in every(browser, "th[data-key]")].count(
        "none"
    ) == 5
    one(browser, "#sentence-more").click()
    assert numbers_shown(browser) == falling
    assert not one(browser, "#sentence-more").is_displayed()


def test_filtering(browser, report):
    address, data, inside = report
    show(browser, address)
    assert one(browser, "#sentence-count").text == "120 of 120 sentences"
    bucket = data["sets"][-1]["buckets"][1]
    Select(one(browser, "#filter-bucket")).select_by_index(2)
    assert one(browser, "#sentence-count").text == f"{bucket['num_pairs']} of 120 sentences"
    Select(one(browser, "#set")).select_by_index(1)  # another set, every length again
    assert one(browser, "#sentence-count").text == "60 of 120 sentences"
    assert min(numbers_shown(browser)) == NUM_SENTENCES
    one(browser, "#filter-text").send_keys("MEADOW")
    sentences = inside["sentences"]
    sides = [sentences["source"], sentences["reference"], *sentences["hypotheses"]]
    with_word = [
        row for row in range(60, 120) if any("meadow" in lines[row].lower() for lines in sides)
    ]
    assert numbers_shown(browser) == with_word[:50]
    one(browser, "#filter-differing").click()
    differing = [
        row
        for row in with_word
        if sentences["hypotheses"][0][row] != sentences["hypotheses"][1][row]
    ]
    assert one(browser, "#sentence-count").text == f"{len(differing)} of 120 sentences"
    one(browser, "#filter-text").send_keys("no such words")
    assert numbers_shown(browser) == []


def test_a_map_by_mouse(browser, report):
    address, _, inside = report
    show(browser, address)
    every(browser, ".map-button")[4].click()
    assert is_open(browser)
    assert one(browser, "#viewer-title").text.startswith("Sentence 5")
    for side, tokens in zip(("top", "left"), inside["sentences"]["maps"][0][4], strict=False):
        labels = [
            label.get_attribute("title") for label in every(browser, f"dialog .map-{side} span")
        ]
        assert labels == inside["tokens"][tokens]
    one(browser, "#viewer-next").click()
    assert one(browser, "#viewer-title").text.startswith("Sentence 6")
    one(browser, "#viewer-run-1").click()
    assert (
        f"{RUNS[1]}: its attention does not look at source positions" in one(browser, "dialog").text
    )
    assert one(browser, "#viewer-run-1").get_attribute("aria-pressed") == "true"
    one(browser, "#viewer-close").click()
    assert not is_open(browser)
    one(browser, '#sentence-rows tr[data-row="7"] td:first-child').click()  # anywhere on a row
    assert one(browser, "#viewer-title").text.startswith("Sentence 8")


def test_a_map_by_keyboard(browser, report):
    address, _, inside = report
    show(browser, address)
    button = every(browser, ".map-button")[1]
    browser.execute_script("arguments[0].focus()", button)
    focused(browser).send_keys(Keys.ENTER)
    assert is_open(browser)
    assert focused(browser).get_attribute("id") == "viewer-close"
    focused(browser).send_keys(Keys.TAB)  # run 1
    focused(browser).send_keys(Keys.TAB)  # run 2
    for _ in range(3):  # the scrolling box may take the focus too
        focused(browser).send_keys(Keys.TAB)
        if focused(browser).tag_name == "canvas":
            break
    assert focused(browser).tag_name == "canvas"
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN):
        focused(browser).send_keys(key)
    source, target, *_ = inside["sentences"]["maps"][0][1]
    said = one(browser, "dialog .readout").text
    assert said.startswith(
        f"{inside['tokens'][target][1]} looks at {inside['tokens'][source][1]}: 0."
    )
    focused(browser).send_keys(Keys.ESCAPE)
    assert not is_open(browser)
    assert focused(browser) == button


def test_every_control_has_a_name_and_every_heading_its_place(browser, report):
    show(browser, report[0])
    controls = [
        control for control in every(browser, "button, select, input") if control.is_displayed()
    ]
    every(browser, ".map-button")[0].click()
    viewer = every(browser, "dialog button, dialog canvas[tabindex]")
    assert len(viewer) == 6
    names_inside = [control.accessible_name for control in viewer]
    focused(browser).send_keys(
        Keys.ESCAPE
    )  # what lies behind an open dialog has no name for anybody
    regions = every(browser, "[role=region]")
    assert all([*names_inside, *(control.accessible_name for control in [*controls, *regions])])
    levels = [int(heading.tag_name[1]) for heading in every(browser, "h1, h2, h3")]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_tables_on_a_phone(browser, report):
    show(browser, report[0], width=390, height=844)
    for name in ("length-table", "attention-table", "significance-table"):
        table = one(browser, f"#{name}")
        box = table.find_element(By.XPATH, "..")
        browser.execute_script("arguments[0].scrollIntoView()", box)
        first = within(table, "tbody th")[0]
        WebDriverWait(browser, 10).until(
            lambda _, box=box: "has-more" in box.get_attribute("class")
        )
        assert box.value_of_css_property("mask-image") != "none"  # the edge fades
        values = [cell.rect for cell in within(table, "tbody tr:first-child td.number")]
        assert any(
            rect["x"] + rect["width"] <= 390 for rect in values
        )  # one at least is seen whole
        left = first.rect["x"]
        browser.execute_script("arguments[0].scrollLeft = arguments[0].scrollWidth", box)
        browser.execute_async_script(
            "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
        )
        assert first.rect["x"] == left  # it sticks
        WebDriverWait(browser, 10).until(
            lambda _, box=box: "has-more" not in box.get_attribute("class")
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_contrast_and_width(browser, seeds, report, width, scheme):
    for address, *_ in (seeds, report):
        show(browser, address, width=width, height=900, scheme=scheme)
        assert browser.execute_script(
            "return document.documentElement.scrollWidth <= window.innerWidth"
        )
        assert browser.execute_script(CONTRAST) == []
