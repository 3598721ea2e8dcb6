"""The page of a run, in a real browser: it translates as the package does, without network;
attention can be forced."""

import json

import pytest

from seq2seq_attn import load
from tests.report.browsing import CONTRAST, ActionChains, By, Keys, every, focused, one, show

pytestmark = pytest.mark.browser

LINES = ["Ein Hund rennt über die Wiese.", "Zwei Männer!", "das Xylophon"]


def in_page(browser, line, **options):
    """`window.seq2seq.translate`."""
    code = """
        const [line, options, done] = arguments;
        window.seq2seq.translate(line, options).then(done);
    """
    return browser.execute_async_script(code, line, options)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_it_translates_as_the_package_does(browser, address, runs, beam_size):
    show(browser, address)
    for number, run in enumerate(runs):
        for line, expected in zip(
            LINES, load(run.path, "cpu").translate(LINES, beam_size=beam_size), strict=True
        ):
            shown = in_page(browser, line, run=number, beamSize=beam_size)
            assert shown["text"] == expected.text
            assert shown["logProb"] == pytest.approx(
                expected.log_prob, abs=0.01
            )  # weights in 16 bits


def test_words_are_marked_forced_and_replaced(browser, address):
    show(browser, address)
    area = one(browser, "#text")
    area.clear()
    area.send_keys("Ein Xylophon rennt über die grüne Wiese und spielt Fußball im Park.")
    section = one(browser, "#run-0")
    one(browser, "#run-0 summary").click()  # the table, which stays open
    assert [word.text for word in section.find_elements(By.CSS_SELECTOR, ".word.unknown")] == [
        "Xylophon",
        "spielt",
    ]
    section.find_elements(By.CSS_SELECTOR, ".row.target .word")[1].click()
    assert len(every(browser, "#run-0 .choices button")) == 5
    every(browser, "#run-0 .row:not(.target) .word")[2].click()
    assert every(browser, "#run-0 .word.forced")
    cell = "return document.querySelectorAll('#run-0 tr')[2].children[3].textContent"
    assert browser.execute_script(cell) == "100 %"
    one(browser, "#run-0 .reset").click()
    assert not every(browser, "#run-0 .word.forced")
    every(browser, "#run-0 .row.target .word")[1].click()
    before = one(browser, "#run-0 .translation").text
    every(browser, "#run-0 .choices button")[1].click()
    assert one(browser, "#run-0 .translation").text != before
    assert "Xylophon" in browser.current_url
    changed = one(browser, "#run-0 .translation").text
    browser.refresh()
    assert one(browser, "#run-0 .translation").text == changed  # the address has the changes too


def test_changing_a_word_clears_the_attention_forced_on_later_ones(browser, address):
    source, target = "#run-0 .row:not(.target) .word", "#run-0 .row.target .word"
    show(browser, f"{address}#text=Ein Hund rennt über die grüne Wiese und spielt Fußball im Park.")
    for word in (2, 1):
        every(browser, target)[word].click()
        every(browser, source)[2].click()
    assert len(every(browser, "#run-0 .word.forced")) == 1
    every(browser, target)[0].click()
    every(browser, "#run-0 .choices button")[1].click()
    assert not every(browser, "#run-0 .word.forced")


def test_it_translates_even_if_the_address_cannot_be_changed(browser, address):
    """As in Safari, which refuses a hundred changes in a short time."""
    show(browser, address)
    browser.execute_script("history.replaceState = () => { throw new Error('too often'); };")
    before = one(browser, "#run-0 .translation").text
    one(browser, "#text").send_keys(" Zwei Männer!")
    assert one(browser, "#run-0 .translation").text != before


def test_a_reader_guesses_where_it_looks(browser, address):
    show(
        browser,
        f"{address}#text=Ein Xylophon rennt über die grüne Wiese und spielt Fußball im Park.",
    )
    one(browser, "#run-0 .guess").click()
    hidden = len(every(browser, "#run-0 .ribbon"))
    assert (
        one(browser, "#run-0 .row.target .chosen").text in one(browser, "#run-0 [role=status]").text
    )
    every(browser, "#run-0 .row:not(.target) .word")[0].click()
    assert "looks at" in one(browser, "#run-0 [role=status]").text
    assert len(every(browser, "#run-0 .ribbon")) > hidden
    assert not every(browser, "#run-1 .guess")  # it has no attention


def test_the_beam_is_a_tree_that_has_the_translation(browser, address, runs):
    show(browser, f"{address}#text=Ein Hund rennt.")
    for summary in every(browser, "#run-0 summary"):
        summary.click()
    best = [node.text for node in every(browser, "#run-0 .tree .best")]
    [translation] = load(runs[0].path, "cpu").translate(
        [one(browser, "#text").get_attribute("value")]
    )
    assert len(best) == 1
    assert float(best[0].split()[-1]) == pytest.approx(translation.log_prob, abs=0.05)
    assert len(every(browser, "#run-0 .tree li")) > 1
    one(browser, "#text").send_keys(" Hund")
    assert every(browser, "#run-0 .tree li")  # still open


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_it_can_be_read_and_asks_for_nothing(browser, address, width, scheme):
    show(browser, f"{address}#text={LINES[0]}", width=width, scheme=scheme)
    assert browser.execute_script(CONTRAST) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    hidden = """
        const figure = document.querySelector('.figure');
        return figure.scrollWidth - figure.clientWidth;
    """
    assert browser.execute_script(hidden) == 0  # words wrap
    entries = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [
        entry["params"] for entry in entries if entry["method"] == "Network.requestWillBeSent"
    ]
    mine = [
        request["request"]["url"]
        for request in requests
        if request["documentURL"].startswith("file:")
    ]
    assert {url.partition("#")[0] for url in mine} <= {address}
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_curve_marks_the_length_of_the_sentence(browser, captions_page):
    show(browser, captions_page.as_uri())
    assert len(every(browser, ".curve polyline")) == 2
    before = one(browser, ".curve .here").get_attribute("x1")
    one(browser, "#text").send_keys(" und noch ein Hund")
    assert float(one(browser, ".curve .here").get_attribute("x1")) > float(before)


def test_mistakes_are_told_from_differences(browser, address, captions_page):
    show(browser, f"{address}#text={LINES[0]}")  # no reference
    assert every(browser, ".word.differs")
    assert not every(browser, ".word.wrong")
    show(browser, captions_page.as_uri())
    assert one(browser, "#reference").text
    assert every(browser, ".word.wrong")
    assert not every(browser, ".word.differs")
    before = one(browser, "#text").get_attribute("value")
    slide = """
        const slider = document.getElementById('longer');
        slider.value = 23;
        slider.dispatchEvent(new Event('input'));
    """
    browser.execute_script(slide)
    assert len(one(browser, "#text").get_attribute("value")) > len(before)


def test_words_are_linked_where_one_points_and_keep_the_focus(browser, address):
    show(browser, f"{address}#text={LINES[0]}")
    ActionChains(browser).move_to_element(one(browser, "#run-0 .row:not(.target) .word")).perform()
    assert "%" in (one(browser, "#run-0 .row.target .word").get_attribute("title") or "")
    browser.execute_script("arguments[0].focus()", one(browser, "#run-0 .row.target .word"))
    focused(browser).send_keys(Keys.ENTER)
    assert focused(browser).get_attribute("aria-pressed") == "true"
    assert every(browser, "#run-0 .choices button")


def test_a_script_from_right_to_left_and_a_wide_one(browser, address):
    show(browser, f"{address}#text=שלום עולם טוב")
    [first, *_, last] = every(browser, "#run-0 .row:not(.target) .word")
    assert first.location["x"] > last.location["x"]
    [first, *_, last] = every(browser, "#run-0 .row.target .word")
    assert first.location["x"] < last.location["x"]
    show(browser, f"{address}#text=一只 狗 跑 过 草地 。", width=360)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_a_script_of_another_page_forces_attention(browser, address):
    show(browser, address)
    assert in_page(browser, LINES[0], force={0: 2, 1: 3})["weights"][1][3] == 1
    assert in_page(browser, "")["tokens"] == []
