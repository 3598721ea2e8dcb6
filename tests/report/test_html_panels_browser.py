"""The panels of sentence vectors, of attention and of arms in a real browser."""

from __future__ import annotations

import json

import pytest

from tests.report.browsing import CONTRAST, ActionChains, By, WebDriverWait, every, one, show
from tests.report.html_reports import make_report
from tests.report.test_html import HOSTILE, payload

pytestmark = pytest.mark.browser

ARMS = ("additive", "additive", "none", "none")
RUNS = ("additive-s1", "additive-s2", "none-s1", "none-s2")


@pytest.fixture(scope="module")
def two_sets(tmp_path_factory):
    """Two runs on two sets, analyzed; sentence 3 looks like markup."""
    return written(
        tmp_path_factory, make_report(60, sets=("flickr", "coco"), texts={2: HOSTILE}, analyzed=True, without_maps=(1,))
    )


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Two arms of two seeds each."""
    return written(tmp_path_factory, make_report(60, RUNS, arms=ARMS, analyzed=True, without_maps=(2, 3)))


def written(tmp_path_factory, made):
    page, report = made
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page, encoding="utf-8")
    return path.as_uri(), json.loads(json.dumps(report.data)), payload(page)


def cells(row):
    return [cell.text for cell in row.find_elements(By.CSS_SELECTOR, "th, td")]


def figure(browser, run):
    return one(browser, f'.space-figure[data-run="{run}"]')


def listed(browser, run):
    """The list of neighbors of a run: cosines, lengths, source sentences."""
    rows = figure(browser, run).find_elements(By.CSS_SELECTOR, ".near-table tbody tr")
    return [[*cells(row)[:2], row.find_element(By.TAG_NAME, "button").get_attribute("textContent")] for row in rows]


def expected_list(inside, run, place):
    vectors, sentences = inside["vectors"], inside["sentences"]
    packed = vectors["runs"][run]
    rows = [vectors["rows"][near] for near in packed["nearest"][place]]
    cosines = [f"{cosine / 100:.2f}".replace("-", "−") for cosine in packed["cosines"][place]]
    return [[c, str(sentences["length"][row]), sentences["source"][row]] for c, row in zip(cosines, rows, strict=True)]


def click_on(browser, run, place):
    """Click a point, not its element: others may lie over it."""
    shown = WebDriverWait(figure(browser, run), 10)  # it is drawn once its size is known
    space = shown.until(lambda of: of.find_element(By.CSS_SELECTOR, "svg.space"))
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", space)
    dot = space.find_elements(By.CSS_SELECTOR, ".dot")[place]
    size = space.size
    across = float(dot.get_attribute("cx")) - size["width"] / 2
    down = float(dot.get_attribute("cy")) - size["height"] / 2
    ActionChains(browser).move_to_element_with_offset(space, round(across), round(down)).click().perform()


def lonely_point(inside, run):
    """A point that no other is near, so that a click is certain to mean it."""
    points = inside["vectors"]["runs"][run]["points"]
    gaps = [
        min((x - u) ** 2 + (y - v) ** 2 for other, (u, v) in enumerate(points) if other != place)
        for place, (x, y) in enumerate(points)
    ]
    return gaps.index(max(gaps))


def test_a_point_by_mouse_lists_its_neighbors_in_every_run(browser, two_sets, tmp_path):
    address, _, inside = two_sets
    show(browser, address)
    assert len(figure(browser, 1).find_elements(By.CSS_SELECTOR, ".dot")) == 120
    assert listed(browser, 0) == expected_list(inside, 0, 0)  # the first sentence, to begin with
    place = lonely_point(inside, 1)
    click_on(browser, 1, place)
    for run in (0, 1):
        assert listed(browser, run) == expected_list(inside, run, place)
        told = figure(browser, run).find_element(By.CSS_SELECTOR, ".space-readout bdi").get_attribute("textContent")
        assert told == inside["sentences"]["source"][inside["vectors"]["rows"][place]]
        assert len(figure(browser, run).find_elements(By.CSS_SELECTOR, ".ring.neighbor")) == 8
    browser.save_screenshot(str(tmp_path / "vectors.png"))


def test_a_sentence_that_looks_like_markup_is_text_here_too(browser, two_sets):
    show(browser, two_sets[0])
    click_on(browser, 0, 2)
    assert (
        figure(browser, 0).find_element(By.CSS_SELECTOR, ".space-readout bdi").get_attribute("textContent") == HOSTILE
    )
    assert every(browser, "#vectors script, #vectors img") == []


def test_seeds_are_shown_as_arms(browser, seeds, tmp_path):
    address, report, inside = seeds
    show(browser, address)
    values = report["sets"][0]
    groups = values["measures"][0]["groups"]
    assert [big.text for big in every(browser, "#headline .big span")] == [f"{group['mean']:.1f}" for group in groups]
    rows = [cells(row) for row in every(browser, '#arm-table tr[data-measure="bleu"]')]
    first, second = groups
    assert rows[0][1:6] == [
        "additive",
        "2",
        f"{first['mean']:.1f}{first['low']:.1f} – {first['high']:.1f}",
        f"{first['standard_deviation']:.2f}",
        f"{first['min']:.1f} – {first['max']:.1f}",
    ]
    [against] = [cells(row) for row in every(browser, "#arm-significance-table tbody tr") if "BLEU" in cells(row)]
    assert against[2] == f"{second['paired_bootstrap']['difference']:+.1f}".replace("-", "−")
    curves, kept = every(browser, "#length svg.chart")
    assert len(curves.find_elements(By.CSS_SELECTOR, "polyline")) == 2
    assert len(kept.find_elements(By.CSS_SELECTOR, "polyline")) == 1
    spread = [g for b in values["buckets"] for g in b["measures"][0]["groups"] if g["max"] > g["min"]]
    assert len(curves.find_elements(By.CSS_SELECTOR, ".seeds")) == len(spread) > 0
    [row] = [row for row in every(browser, "#arm-length-table tbody tr") if cells(row)[0] == "all"]
    assert cells(row)[2].startswith(f"{first['mean']:.1f} ± {first['standard_deviation']:.1f}")
    assert not one(browser, "#score-table").is_displayed()  # each run by itself is one click away
    one(browser, "#scores summary").click()
    assert one(browser, "#score-table").is_displayed()
    browser.save_screenshot(str(tmp_path / "arms.png"))
    assert [of.get_attribute("data-run") for of in every(browser, ".space-figure")] == [
        "0",
        "2",
    ]  # the first of each arm
    chrf = inside["sentences"]["chrf"]
    means = [[(chrf[a][row] + chrf[b][row]) / 2 for row in range(60)] for a, b in ((0, 1), (2, 3))]
    one(browser, 'th[data-key="difference-1"] button').click()
    shown = [int(row.get_attribute("data-row")) for row in every(browser, "#sentence-rows tr")]
    assert shown == sorted(range(60), key=lambda row: (means[1][row] - means[0][row], row))[:50]
    rows = [cells(row) for row in every(browser, "#attention-table tbody tr")][-2:]
    analyzed = values["attention"]["runs"]
    assert rows[0][2:4] == ["additive", f"{(analyzed[0]['entropy'] + analyzed[1]['entropy']) / 2:.2f}"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_contrast_and_width(browser, seeds, two_sets, tmp_path, width, scheme):
    for name, (address, *_) in {"seeds": seeds, "two": two_sets}.items():
        show(browser, address, width=width, height=900, scheme=scheme)
        assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.execute_script(CONTRAST) == []
        for place in ("scores", "attention", "vectors"):
            browser.execute_script(f"document.getElementById('{place}').scrollIntoView()")
            browser.save_screenshot(str(tmp_path / f"{name}-{place}-{width}-{scheme}.png"))
