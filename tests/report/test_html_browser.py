"""The HTML pages in a real browser: sort, filter, open maps by mouse and by keyboard, dark mode, phone width.

Screenshots of what was tested land in `tmp_path`.
"""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.report.browsing import By, Keys, Select, every, focused, one, show
from tests.report.html_reports import make_report
from tests.report.test_html import HOSTILE, payload

pytestmark = pytest.mark.browser

NUM_SENTENCES = 60


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page of two sets; sentence 3 looks like markup."""
    page, report = make_report(NUM_SENTENCES, sets=("flickr", "coco"), texts={2: HOSTILE})
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri(), report, payload(page)


def numbers_shown(browser):
    return [int(row.get_attribute("data-row")) for row in every(browser, "#sentence-rows tr[data-row]")]


def header(browser, key):
    return one(browser, f'th[data-key="{key}"]')


def is_open(browser):
    return browser.execute_script("return document.querySelector('dialog').open")


def test_the_page_asks_for_nothing_but_itself(browser, report):
    browser.get_log("performance")
    show(browser, report[0])
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    asked = [one["request"]["url"] for one in requests if one["documentURL"] == report[0]]  # not the browser's own
    assert [address for address in asked if not address.startswith("data:")] == [report[0]]


def test_scores_are_those_of_the_report(browser, report, tmp_path):
    address, made, _ = report
    show(browser, address)
    for place, values in enumerate(made.data["sets"]):
        Select(one(browser, "#set")).select_by_index(place)
        for measure in values["measures"]:
            shown = [cell.text for cell in every(browser, f'#score-table tr[data-measure="{measure["name"]}"] td')]
            assert shown == [f"{r['score']:.1f}{r['low']:.1f} – {r['high']:.1f}" for r in measure["runs"]]
        bleu = values["measures"][0]["runs"]
        assert [big.text for big in every(browser, "#headline .big span")] == [f"{r['score']:.1f}" for r in bleu]
        against = [cell.text for cell in every(browser, "#significance-table tbody tr:first-child td")]
        test, kept = bleu[1]["paired_bootstrap"], bleu[1]["retention"]
        assert against[1] == f"{test['difference']:+.1f}".replace("-", "−")
        assert against[2:4] == [
            f"{bleu[1][f'paired_{kind}']['p_value']:.3f}" for kind in ("bootstrap", "randomization")
        ]
        assert against[4] == f"{kept['value']:.2f}{kept['low']:.2f} – {kept['high']:.2f}"
    browser.save_screenshot(str(tmp_path / "scores.png"))


def test_markup_in_a_sentence_is_text(browser, report):
    show(browser, report[0])
    one(browser, "#filter-text").send_keys("onerror=alert")
    [row] = every(browser, "#sentence-rows tr")
    texts = [text.get_attribute("textContent") for text in row.find_elements(By.CSS_SELECTOR, "dd > bdi")]
    assert texts == [HOSTILE] * 4
    assert every(browser, "#main script, #main img") == []


def test_sorting(browser, report, tmp_path):
    address, _, inside = report
    show(browser, address)
    scores = inside["sentences"]["chrf"][1]
    header(browser, "chrf-1").find_element(By.TAG_NAME, "button").click()
    assert header(browser, "chrf-1").get_attribute("aria-sort") == "ascending"
    rising = sorted(range(2 * NUM_SENTENCES), key=lambda row: (scores[row], row))
    assert numbers_shown(browser) == rising[:50]
    assert focused(browser).find_element(By.XPATH, "..").get_attribute("data-key") == "chrf-1"
    focused(browser).send_keys(Keys.ENTER)
    assert header(browser, "chrf-1").get_attribute("aria-sort") == "descending"
    falling = sorted(range(2 * NUM_SENTENCES), key=lambda row: (-scores[row], row))
    assert numbers_shown(browser) == falling[:50]
    assert [cell.get_attribute("aria-sort") for cell in every(browser, "th[data-key]")].count("none") == 5
    browser.save_screenshot(str(tmp_path / "sorted.png"))
    one(browser, "#sentence-more").click()
    assert numbers_shown(browser) == falling
    assert not one(browser, "#sentence-more").is_displayed()


def test_filtering(browser, report, tmp_path):
    address, made, inside = report
    show(browser, address)
    assert one(browser, "#sentence-count").text == "120 of 120 sentences"
    bucket = made.data["sets"][-1]["buckets"][1]
    Select(one(browser, "#filter-bucket")).select_by_index(2)
    assert one(browser, "#sentence-count").text == f"{bucket['num_pairs']} of 120 sentences"
    Select(one(browser, "#set")).select_by_index(1)  # another set, every length again
    assert one(browser, "#sentence-count").text == "60 of 120 sentences"
    assert min(numbers_shown(browser)) == NUM_SENTENCES
    one(browser, "#filter-text").send_keys("MEADOW")
    sentences = inside["sentences"]
    texts = [sentences["source"], sentences["reference"], *sentences["hypotheses"]]
    with_word = [row for row in range(60, 120) if any("meadow" in of[row].lower() for of in texts)]
    assert numbers_shown(browser) == with_word[:50]
    one(browser, "#filter-differing").click()
    differing = [row for row in with_word if sentences["hypotheses"][0][row] != sentences["hypotheses"][1][row]]
    assert one(browser, "#sentence-count").text == f"{len(differing)} of 120 sentences"
    browser.save_screenshot(str(tmp_path / "filtered.png"))
    one(browser, "#filter-text").send_keys("no such words")
    assert numbers_shown(browser) == []


def test_a_map_by_mouse(browser, report, tmp_path):
    address, _, inside = report
    show(browser, address)
    button = every(browser, ".map-button")[4]
    button.click()
    assert is_open(browser)
    assert one(browser, "#viewer-title").text.startswith("Sentence 5")
    source, target, *_ = inside["sentences"]["maps"][0][4]
    tokens = inside["tokens"]
    assert [label.get_attribute("title") for label in every(browser, "dialog .map-top span")] == tokens[source]
    assert [label.get_attribute("title") for label in every(browser, "dialog .map-left span")] == tokens[target]
    browser.save_screenshot(str(tmp_path / "map.png"))
    one(browser, "#viewer-next").click()
    assert one(browser, "#viewer-title").text.startswith("Sentence 6")
    one(browser, "#viewer-run-1").click()
    assert "none: its attention does not look at source positions" in one(browser, "dialog").text
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
    assert said.startswith(f"{inside['tokens'][target][1]} looks at {inside['tokens'][source][1]}: 0.")
    focused(browser).send_keys(Keys.ESCAPE)
    assert not is_open(browser)
    assert focused(browser) == button


def test_every_control_has_a_name_and_every_heading_its_place(browser, report):
    show(browser, report[0])
    controls = [control for control in every(browser, "button, select, input") if control.is_displayed()]
    every(browser, ".map-button")[0].click()
    viewer = every(browser, "dialog button, dialog canvas[tabindex]")
    assert len(viewer) == 6
    names_inside = [control.accessible_name for control in viewer]
    focused(browser).send_keys(Keys.ESCAPE)  # what lies behind an open dialog has no name for anybody
    assert all([*names_inside, *(control.accessible_name for control in controls)])
    levels = [int(heading.tag_name[1]) for heading in every(browser, "h1, h2, h3")]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    regions = every(browser, "[role=region]")
    assert regions
    assert all(region.accessible_name for region in regions)
