"""The panels of attention and of arms in a real browser."""

from __future__ import annotations

import json

import pytest

from tests.report.browsing import CONTRAST, By, every, one, show
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
        for place in ("scores", "attention"):
            browser.execute_script(f"document.getElementById('{place}').scrollIntoView()")
            browser.save_screenshot(str(tmp_path / f"{name}-{place}-{width}-{scheme}.png"))
