"""The HTML report in a real browser: how it begins, the words that it marks, curves, tables on a phone."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.report.browsing import ActionChains, By, WebDriverWait, every, one, show
from tests.report.html_reports import make_report
from tests.report.test_html import payload

pytestmark = pytest.mark.browser

RUNS = ("additive", "a-run-with-a-name-of-many-words-and-numbers-2026")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two runs with attention; of sentence 3 two source words are unknown."""
    page, report = make_report(60, RUNS, without_maps=(), analyzed=True, unknown={2: (0, 2)}, validations=(20, 5))
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri(), json.loads(json.dumps(report.data)), payload(page)


def texts(nodes):
    return [node.get_attribute("textContent") for node in nodes]


def within(node, selector):
    return node.find_elements(By.CSS_SELECTOR, selector)


def row(browser, number):
    return one(browser, f'#sentence-rows tr[data-row="{number}"]')


def words(text):
    return [word for word in text.lower().replace(".", " ").split() if word]


def lacked(text, other):
    return sorted((Counter(words(text)) - Counter(words(other))).elements())


def test_it_begins_with_the_finding_and_a_map(browser, report, tmp_path):
    address, data, inside = report
    show(browser, address)
    assert one(browser, "h1").text == f"German to English: {RUNS[0]} and {RUNS[1]}"
    assert one(browser, "#top .quiet").text.startswith("60 sentence pairs of flickr; ")
    assert one(browser, "#conclusion").text == data["conclusion"]
    assert every(browser, "main section")[0].get_attribute("id") == "example"
    example = one(browser, "#example")
    assert one(browser, "#map-note").text == inside["map_note"]
    chosen = inside["example"]
    dd = texts(within(example, "dd > bdi"))
    assert dd == [inside["sentences"][side][chosen["row"]] for side in ("source", "reference")] + [
        of[chosen["row"]] for of in inside["sentences"]["hypotheses"]
    ]
    assert within(example, "canvas")[0].is_displayed()
    text, picture = within(example, ".beside-text")[0].rect, within(example, ".map")[0].rect
    assert picture["x"] >= text["x"] + text["width"]  # beside it, not below
    browser.save_screenshot(str(tmp_path / "begin.png"))


def test_pointing_at_a_cell_points_at_the_words(browser, report):
    address, _, inside = report
    show(browser, address)
    chosen = inside["example"]
    source, target, *_ = inside["sentences"]["maps"][chosen["run"]][chosen["row"]]
    canvas = one(browser, "#example canvas[tabindex]")
    size = canvas.size["width"] / len(inside["tokens"][source])
    across, down = 2.5 * size - canvas.size["width"] / 2, 1.5 * size - canvas.size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(canvas, round(across), round(down)).perform()
    pointed = [inside["tokens"][source][2], inside["tokens"][target][1]]
    assert texts(every(browser, "#example dd .pointed")) == pointed
    assert texts(every(browser, "#example .map-top .pointed, #example .map-left .pointed")) == pointed
    assert one(browser, "#example .readout").text.startswith(f"{pointed[1]} looks at {pointed[0]}")
    ActionChains(browser).move_to_element(one(browser, "h1")).perform()
    assert every(browser, "#example .pointed") == []


def test_words_that_reference_and_hypotheses_do_not_share(browser, report):
    address, _, inside = report
    show(browser, address)
    sentences = inside["sentences"]
    for number in range(10):
        reference, outputs = sentences["reference"][number], [of[number] for of in sentences["hypotheses"]]
        shown = row(browser, number)
        for hypothesis, node in zip(outputs, within(shown, ".hypothesis dd"), strict=True):
            assert sorted(text.lower() for text in texts(within(node, "ins"))) == lacked(hypothesis, reference)
        missing = [lacked(reference, hypothesis) for hypothesis in outputs]
        struck = [text.lower() for text in texts(within(shown, "del.missing:not(.some)"))]
        dotted = [text.lower() for text in texts(within(shown, "del.missing.some"))]
        assert sorted(struck + dotted) == sorted((Counter(missing[0]) | Counter(missing[1])).elements())
        assert sorted(struck) == sorted((Counter(missing[0]) & Counter(missing[1])).elements())
    [excess, missing] = [every(browser, f"#sentence-rows {mark}")[0] for mark in ("ins", "del.missing:not(.some)")]
    assert "underline" in excess.value_of_css_property("text-decoration-line")
    assert "line-through" in missing.value_of_css_property("text-decoration-line")
    assert excess.get_attribute("title") == "not in the reference"
    assert missing.get_attribute("title") == "missing from the translation of every run"
    assert RUNS[1] in {
        mark.get_attribute("title").removeprefix("missing from the translation of ")
        for mark in every(browser, "del.some")
    }
    assert "words that the reference lacks" in one(browser, "#marks-legend").text


def test_tables_on_a_phone(browser, report, tmp_path):
    show(browser, report[0], width=390, height=844)
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    for name in ("length-table", "attention-table", "significance-table"):
        table = one(browser, f"#{name}")
        box = table.find_element(By.XPATH, "..")
        browser.execute_script("arguments[0].scrollIntoView()", box)
        first = within(table, "tbody th")[0]
        WebDriverWait(browser, 10).until(lambda _, box=box: "has-more" in box.get_attribute("class"))
        assert box.value_of_css_property("mask-image") != "none"  # the edge fades
        values = [cell.rect for cell in within(table, "tbody tr:first-child td.number")]
        assert any(rect["x"] + rect["width"] <= 390 for rect in values)  # one at least is seen whole
        place = first.rect["x"]
        browser.execute_script("arguments[0].scrollLeft = arguments[0].scrollWidth", box)
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        assert first.rect["x"] == place  # it sticks
        WebDriverWait(browser, 10).until(lambda _, box=box: "has-more" not in box.get_attribute("class"))
        browser.save_screenshot(str(tmp_path / f"{name}.png"))
