"""The page of a run, in a real browser: it translates as the package does, without network;
attention can be forced."""

import json
import re
from urllib.parse import quote

import pytest

from seq2seq_attn import load
from seq2seq_attn.report.template import embedded_json
from tests.report.browsing import (
    CONTRAST,
    ActionChains,
    Keys,
    WebDriverWait,
    every,
    focused,
    one,
    show,
)

pytestmark = pytest.mark.browser

LINES = ["Ein Hund rennt über die Wiese.", "Zwei Männer!", "das Xylophon"]


@pytest.fixture(autouse=True)
def fresh(browser):
    """Addresses that differ in their fragment alone would not load the page again."""
    browser.get("about:blank")


LONG = "Ein Xylophon rennt über die grüne Wiese und spielt Fußball im Park."
SOURCE = "#run-0 .row:not(.target) .word"
TARGET = "#run-0 .row.target .word"


def click_summary(browser, part, run=0):
    """Open a part, whose content comes after the event of the click."""
    one(browser, f"[data-key='{run} {part}']").click()
    content = f"details:has([data-key='{run} {part}']) > .scrolls"
    WebDriverWait(browser, 5).until(lambda _: every(browser, content))


def table(browser):
    """The attention as a table, which is open: a row of text for each target word."""
    rows = """
        const rows = [...document.querySelectorAll('#run-0 details:has([data-key="0 table"]) tr')];
        return rows.slice(1).map((row) => [...row.children].slice(1).map((c) => c.textContent));
    """
    return browser.execute_script(rows)


def write(browser, text):
    area = one(browser, "#text")
    area.clear()
    area.send_keys(text)


VALUES = re.compile(r'(?<=type="application/json">).*(?=</script>\n<script>)')


def values_of(page):
    return json.loads(VALUES.search(page.read_text("utf-8"))[0])


def page_with(page, name, **changes):
    """The address of a copy of a page with other values."""
    text = embedded_json(values_of(page) | changes)
    changed = page.with_name(name)
    changed.write_text(VALUES.sub(lambda _: text, page.read_text("utf-8")), "utf-8")
    return changed.as_uri()


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


@pytest.fixture
def long(browser, address):
    """The browser, which shows the translations of a long sentence."""
    show(browser, f"{address}#text={LONG}")
    return browser


def test_words_are_marked_forced_and_replaced(browser, address):
    show(browser, address)
    write(browser, LONG)
    click_summary(browser, "table")  # which stays open
    unknown = every(browser, "#run-0 .word.unknown")
    assert [word.text for word in unknown] == ["Xylophon", "spielt"]
    every(browser, TARGET)[1].click()
    assert len(every(browser, "#run-0 .choices button")) == 5
    every(browser, SOURCE)[2].click()
    assert every(browser, "#run-0 .word.forced")
    assert table(browser)[1][2] == "100 %"
    one(browser, "#run-0 .reset").click()
    assert not every(browser, "#run-0 .word.forced")
    every(browser, TARGET)[1].click()
    before = one(browser, "#run-0 .translation").text
    every(browser, "#run-0 .choices button")[1].click()
    assert one(browser, "#run-0 .translation").text != before
    assert "Xylophon" in browser.current_url
    changed = one(browser, "#run-0 .translation").text
    browser.refresh()
    assert one(browser, "#run-0 .translation").text == changed  # the address has the changes too


def test_changing_a_word_clears_the_attention_forced_on_later_ones(long):
    for word in (2, 1):
        every(long, TARGET)[word].click()
        every(long, SOURCE)[2].click()
    assert len(every(long, "#run-0 .word.forced")) == 1
    every(long, TARGET)[0].click()
    every(long, "#run-0 .choices button")[1].click()
    assert not every(long, "#run-0 .word.forced")


def test_it_translates_even_if_the_address_cannot_be_changed(browser, address):
    """As in Safari, which refuses a hundred changes in a short time."""
    show(browser, address)
    browser.execute_script("history.replaceState = () => { throw new Error('too often'); };")
    before = one(browser, "#run-0 .translation").text
    one(browser, "#text").send_keys(" Zwei Männer!")
    assert one(browser, "#run-0 .translation").text != before


def test_a_reader_guesses_where_it_looks_at_a_content_word(long):
    one(long, "#run-0 .guess").click()
    assert not every(long, "#run-0 .ribbon, #run-0 .map")
    asked = one(long, "#run-0 .row.target .chosen").text
    assert asked.isalpha()
    assert asked not in ("the", "a", "A", "The")
    assert asked in one(long, "#run-0 .choices [role=status]").text
    every(long, SOURCE)[0].click()
    assert "looks at" in one(long, "#run-0 .choices [role=status]").text
    assert every(long, "#run-0 .ribbon, #run-0 .map")
    assert not every(long, "#run-1 .guess")  # it has no attention


def test_the_beam_is_a_tree_that_has_the_translation(browser, address, runs):
    show(browser, f"{address}#text=Ein Hund rennt.")
    click_summary(browser, "beam")
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
    for summary in every(browser, "summary"):
        summary.click()
    one(browser, TARGET).click()
    assert browser.execute_script(CONTRAST) == []
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
    ActionChains(browser).move_to_element(one(browser, SOURCE)).perform()
    assert "%" in (one(browser, TARGET).get_attribute("title") or "")
    browser.execute_script("arguments[0].focus()", one(browser, TARGET))
    focused(browser).send_keys(Keys.ENTER)
    assert focused(browser).get_attribute("aria-pressed") == "true"
    assert every(browser, "#run-0 .choices button")


def test_a_script_from_right_to_left_and_a_wide_one(browser, address):
    show(browser, f"{address}#text=שלום עולם טוב")
    [first, *_, last] = every(browser, SOURCE)
    assert first.location["x"] > last.location["x"]
    [first, *_, last] = every(browser, TARGET)
    assert first.location["x"] < last.location["x"]
    show(browser, f"{address}#text=一只 狗 跑 过 草地 。", width=360)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


def test_a_script_of_another_page_forces_attention(browser, address):
    show(browser, address)
    assert in_page(browser, LINES[0], force={0: 2, 1: 3})["weights"][1][3] == 1
    assert in_page(browser, "")["tokens"] == []


@pytest.fixture(scope="module")
def translated(runs):
    """What the run with attention makes of the long sentence, and its tokens."""
    [best] = load(runs[0].path, "cpu").translate([LONG])
    return best


def note(browser, run=0):
    return one(browser, f"#run-{run} > div:last-child > .quiet").text


@pytest.mark.parametrize("change", ["exchange", "shorter", "longer", "none"])
def test_a_translation_is_compared_with_its_reference_in_order(
    browser, runs, address, translated, change
):
    tokens = translated.text.split()
    reference = {
        "exchange": [tokens[-1], *tokens[1:-1], tokens[0]],
        "shorter": tokens[1:],
        "longer": [*tokens[:2], "zebra", *tokens[2:]],
        "none": tokens,
    }[change]
    page = runs[0].path.with_name("page.html")
    sentences = [[LONG, " ".join(reference)]]
    show(browser, f"{page_with(page, f'{change}.html', sentences=sentences)}#text={LONG}")
    assert bool(every(browser, "#run-0 .word.wrong")) == (change in ("exchange", "shorter"))
    assert bool(every(browser, "#run-0 del.missing")) == (change in ("exchange", "longer"))
    assert ("Equal to the reference" in note(browser)) == (change == "none")


def test_unknown_words_are_named_in_a_sentence(long):
    assert "Xylophon, spielt" in one(long, "#unknown").text
    write(long, "Ein Hund")
    assert one(long, "#unknown").text == ""


def test_unknown_words_of_all_sentences_and_short_translations_are_named(browser, runs, address):
    lines = {"one_sentence": True, "ratio": 100, "shortness": 0}
    page = with_values(runs[0].path.with_name("page.html"), "short.html", lines=lines)
    show(browser, f"{page}#text=Ein Hund. Ein Xylophon.")
    said = one(browser, "#unknown").text
    assert "Xylophon" in said
    assert "missing" in said


@pytest.mark.parametrize(
    ("text", "said"), [("Hund " * 600, "600"), ("Ein Xylophon rennt und rennt", "5")]
)
def test_the_curve_promises_nothing_for_a_sentence_unlike_those_of_the_test_set(
    browser, captions_page, text, said
):
    show(browser, f"{captions_page.as_uri()}#text={text.strip()}")
    assert said in one(browser, "#curve-note").text
    assert "%" not in one(browser, "#curve-note").text


def test_the_curve_names_the_models_beside_their_shares(browser, captions_page):
    length = values_of(captions_page)["accuracy"][0]["longest"]
    show(browser, f"{captions_page.as_uri()}#text={' '.join(['Hund'] * length)}")
    assert re.search(r"run \d+ %, run \d+ %", one(browser, "#curve-note").text)


@pytest.mark.parametrize("width", [1280, 360])
def test_labels_of_the_curve_can_be_read(browser, captions_page, width):
    show(browser, captions_page.as_uri(), width=width)
    size = """
        const curve = document.querySelector('.curve');
        const scale = curve.getBoundingClientRect().width / curve.viewBox.baseVal.width;
        return scale * parseFloat(getComputedStyle(curve.querySelector('text')).fontSize);
    """
    assert browser.execute_script(size) >= 12


@pytest.mark.parametrize(("width", "words"), [(1280, 40), (360, 9)])
def test_a_heat_map_is_shown_where_ribbons_do_not_fit(browser, address, width, words):
    show(browser, f"{address}#text={' '.join(['Hund'] * words)}", width=width)
    assert every(browser, "#run-0 .map-grid svg")
    assert not every(browser, "#run-0 .ribbon")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    one(browser, "#run-0 .view").click()
    assert every(browser, "#run-0 .ribbon")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    one(browser, "#run-0 .view").click()
    assert every(browser, "#run-0 .map-grid svg")


def test_a_wide_heat_map_scrolls_and_its_cells_light_their_words(browser, address):
    show(browser, f"{address}#text={' '.join(['Hund'] * 90)}", width=360)
    grid = "const grid = document.querySelector('#run-0 .map-grid');"
    assert browser.execute_script(f"{grid} return grid.scrollWidth > grid.clientWidth + 500")
    one(browser, "#run-0 .map-grid svg").send_keys(Keys.ARROW_DOWN)
    assert len(every(browser, f"{SOURCE}.lit")) == len(every(browser, f"{TARGET}.lit")) == 1


@pytest.mark.parametrize("words", [11, 60])
def test_figures_are_printed_whole(browser, address, words):
    show(browser, f"{address}#text={' '.join(['Hund'] * words)}")
    features = {"media": "print", "features": []}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
    paper = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    cut = """
        return [...document.querySelectorAll('.figure, .map-grid, .row')].filter((node) => {
          const box = node.getBoundingClientRect();
          const style = getComputedStyle(node);
          return box.right > innerWidth + 1 || style.overflowX === 'auto';
        }).length;
    """
    try:
        assert browser.execute_script(cut) == 0
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_a_sentence_that_the_slider_replaced_comes_back(browser, captions_page):
    show(browser, captions_page.as_uri())
    write(browser, "Mein eigener Satz")
    browser.execute_script("""
        const slider = document.getElementById('longer');
        slider.value = 20;
        setTimeout(() => slider.dispatchEvent(new Event('input')), 1100);
    """)
    wait = WebDriverWait(browser, 5)
    wait.until(lambda _: one(browser, "#text").get_attribute("value") != "Mein eigener Satz")
    one(browser, "#undo").click()
    assert one(browser, "#text").get_attribute("value") == "Mein eigener Satz"


def test_changes_of_a_translation_are_undone_one_by_one(long):
    before = one(long, "#run-0 .translation").text
    every(long, TARGET)[1].click()
    every(long, "#run-0 [data-key^=take]")[1].click()
    assert one(long, "#run-0 .translation").text != before
    one(long, "#undo").click()
    assert one(long, "#run-0 .translation").text == before
    assert not one(long, "#undo").is_enabled()


def test_the_beam_size_can_be_chosen_and_is_kept_in_the_address(long, runs):
    one(long, "#beam").send_keys("1")
    [greedy] = load(runs[0].path, "cpu").translate([LONG], beam_size=1)
    assert one(long, "#run-0 .translation").text == greedy.text
    assert "beam=1" in long.current_url
    long.refresh()
    assert one(long, "#beam").get_attribute("value") == "1"


def test_a_source_word_can_be_hidden_from_the_attention(long):
    click_summary(long, "table")
    every(long, SOURCE)[2].click()
    assert every(long, SOURCE)[2].get_attribute("aria-pressed") == "true"
    assert {row[2] for row in table(long)} == {"0 %"}
    long.refresh()
    assert every(long, f"{SOURCE}.blocked")  # the address has it
    every(long, SOURCE)[2].click()
    assert not every(long, f"{SOURCE}.blocked")
    weights = in_page(long, LONG, blocked=[0, 2])["weights"]
    assert all(sum(row) == pytest.approx(1, abs=1e-5) for row in weights)
    assert {row[2] for row in weights} == {0}


def test_escape_clears_what_is_chosen_then_closes_what_is_open(long):
    click_summary(long, "table")
    every(long, TARGET)[0].click()
    focused(long).send_keys(Keys.ESCAPE)
    assert not every(long, "#run-0 .chosen")
    assert every(long, "#run-0 details[open]")
    focused(long).send_keys(Keys.ESCAPE)
    assert not every(long, "#run-0 details[open]")


def test_a_row_of_words_is_one_tab_stop_in_which_arrows_move(long):
    for row in (SOURCE, TARGET):
        assert len(every(long, f'{row}[tabindex="0"]')) == 1
    one(long, SOURCE).send_keys(Keys.ARROW_RIGHT)
    assert focused(long).text == "Xylophon"
    focused(long).send_keys(Keys.END)
    assert focused(long).text == "(end)"
    focused(long).send_keys(Keys.HOME)
    assert focused(long).text == "Ein"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ('[{"prefix":[99999]},{}]', "99999"),
        ('[{"force":{"0":77}},{}]', "77"),
        ('[{"blocked":[-4]},{}]', "-4"),
        ("[{", "changes"),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said(browser, address, changes, said):
    show(browser, f"{address}#text={LINES[0]}&changes={quote(changes)}")
    assert said in one(browser, "#link-note").text
    assert one(browser, "#run-0 .translation").text


def test_an_empty_page_offers_examples(browser, captions_page):
    show(browser, f"{captions_page.as_uri()}#text=")
    example = one(browser, "#examples button")
    text = example.text
    example.click()
    assert one(browser, "#text").get_attribute("value") == text
    assert one(browser, "#run-0 .translation").text
    assert not one(browser, "#examples").is_displayed()


def test_pointing_at_a_word_dims_the_ribbons_of_others(browser, address):
    show(browser, f"{address}#text={LINES[0]}")
    target = one(browser, "#run-0 .ribbon").get_attribute("data-target")
    ActionChains(browser).move_to_element(every(browser, TARGET)[int(target)]).perform()
    opacities = """
        return [...document.querySelectorAll('#run-0 .ribbon')].map((ribbon) =>
          [ribbon.dataset.target, getComputedStyle(ribbon).opacity]);
    """
    shown = browser.execute_script(opacities)
    assert {opacity for word, opacity in shown if word == target} == {"1"}
    assert {opacity for word, opacity in shown if word != target} == {"0.1"}


def test_what_happens_at_a_word_is_explained_with_its_numbers(long):
    every(long, TARGET)[1].click()
    rows = [row.text.split() for row in every(long, "#run-0 .explained tr")[1:]]
    assert len(rows) == len(every(long, SOURCE))
    total = sum(float(row[-3]) for row in rows)
    for row in rows:
        assert float(row[-3]) / total == pytest.approx(float(row[-2]) / 100, abs=0.006)
    assert every(long, "#run-0 .explained .strip")  # the context


def test_the_table_is_shaded_by_weight(long):
    click_summary(long, "table")
    cells = """
        return [...document.querySelectorAll('#run-0 details td')].map((cell) =>
          [parseInt(cell.textContent), getComputedStyle(cell).backgroundColor]);
    """
    shown = sorted(map(tuple, long.execute_script(cells)))
    assert shown[0][1] != shown[-1][1]


def test_words_and_buttons_are_large_enough_for_a_finger(browser, address):
    show(browser, f"{address}#text={LINES[0]}", width=390)
    small = """
        return [...document.querySelectorAll('button, summary')].filter((node) =>
          node.getClientRects().length && node.getBoundingClientRect().height < 40).length;
    """
    assert browser.execute_script(small) == 0


STAND_INS = {
    "known": "Ein Hund rennt Zwei Frau Buch Bank".split(),
    "numbers": [["Drei", "Three"]],
    "others": [["Hund", "dog"], ["Frau", "woman"], ["Buch", "book"]],
    "copied": ["number", "code", "name"],
    "pattern": r"[^\s.,!?;]+",
}


def with_values(page, name, **values):
    """The address of a copy of a page whose runs have other values."""
    runs = [run | values for run in values_of(page)["runs"]]
    return page_with(page, name, runs=runs)


def test_the_sentences_of_a_text_are_translated_one_by_one(browser, runs, address):
    page = with_values(
        runs[0].path.with_name("page.html"),
        "sentences.html",
        lines={"one_sentence": True, "ratio": 0, "shortness": 0},
        spaces_sentences=True,
    )
    sentences = ["Ein Hund rennt.", "Zwei Männer spielen.", "Eine Frau liest ein Buch."]
    show(browser, f"{page}#text={' '.join(sentences)}")
    translations = load(runs[0].path, "cpu").translate(sentences)
    whole = " ".join(translation.text for translation in translations if translation.text)
    assert one(browser, "#run-0 .translation").text == whole
    assert "3 sentences" in one(browser, "#sentences").text
    every(browser, "#sentences button")[1].click()
    assert one(browser, SOURCE).text == "Zwei"
    assert "sentence=2" in browser.current_url
    assert in_page(browser, " ".join(sentences))["text"] == whole


def test_unknown_words_come_out_as_they_went_in(browser, runs, address):
    path = runs[0].path.with_name("page.html")
    search = values_of(path)["runs"][0]["search"] | {"unk": "pass"}
    page = with_values(path, "words.html", words=STAND_INS, search=search)
    show(browser, f"{page}#text=4711 Xylophon!")
    assert one(browser, "#run-0 .translation").text == "4711 Xylophon!"
    write(browser, "Ein Xylophon rennt über die grüne Wiese.")
    assert "Xylophon" in one(browser, "#run-0 .translation").text
    assert "Xylophon" in [word.text for word in every(browser, SOURCE)]
    assert every(browser, f"{SOURCE}.unknown")[0].text == "Xylophon"
    assert "looks back: the translation lacks" not in one(browser, "#unknown").text


def test_an_unknown_word_that_the_translation_lacks_is_named(browser, address):
    show(browser, f"{address}#text=Ein Xylophon spielt.")
    assert "translation lacks Xylophon" in one(browser, "#unknown").text
