"""The page of two runs, or of one, in Chromium: its size, how long it takes, and the pictures of it
in docs/plots."""

import io
import json
import shutil
from base64 import b64decode
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from scripts.laboratory.demo import CONFIGS, SENTENCE
from scripts.laboratory.harness.records import ROOT
from seq2seq_attn.errors import UserError
from seq2seq_attn.export.page import export_page
from seq2seq_attn.run import Run

PLOTS = ROOT / "docs" / "plots"
NUM_TRIALS = 9
WIDTH = 1000
"""of a picture, in pixels"""
NUM_COLORS = 48
"""of a picture: enough for text and ribbons, and a third of the bytes of all colors"""
LONG = (
    "Am Abend hat die junge Frau mit dem roten Hut dem alten Mann, der auf der Bank sitzt, ein "
    "großes Buch gezeigt."
)
"""a sentence of 22 words"""
LONGER = (
    "Ein Mann mit einem schwarzen Hut und einer roten Jacke spielt auf einer Bühne Gitarre, eine "
    "Frau in einem blauen Kleid singt, und zwei Kinder sitzen auf einer Bank im Park."
)
"""a sentence whose translation by a model of Multi30k has about 30 tokens"""
READY = """
const [page] = performance.getEntriesByType('navigation');
const answer = () =>
  page.domInteractive > 0 ? arguments[0](page.domInteractive) : setTimeout(answer, 10);
answer();
"""
"""milliseconds until the page's script has run"""
DRAW = """
const area = document.getElementById('text');
area.value = arguments[0];
const start = performance.now();
area.dispatchEvent(new Event('input'));
document.body.getBoundingClientRect();
return performance.now() - start;
"""
TRANSLATE = """
const [text, done] = arguments;
const start = performance.now();
window.seq2seq.translate(text)
  .then(({ tokens }) => done([performance.now() - start, tokens.length]));
"""
# a click on a word of the translation, then on a word of the sentence, by position
FORCE = """
document.querySelectorAll('#run-0 .row.target .word')[arguments[0]].click();
document.querySelectorAll('#run-0 .row:not(.target) .word')[arguments[1]].click();
"""
BEAM = "document.querySelector('#run-0 details:last-of-type summary').click()"


def main(arguments: Sequence[str] = ()) -> None:
    """Of the demo's runs, or of those that are named: their page is measured only."""
    paths = [Path(argument) for argument in arguments] or [ROOT / path for path in CONFIGS]
    with TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        export_page([Run(path) for path in paths], page)
        browser = start_browser(folder)
        try:
            print(f"{page.stat().st_size / 1e6:.2f} MB")
            measure(browser, page.as_uri())
            if not arguments:
                PLOTS.mkdir(exist_ok=True)
                photograph(browser, page.as_uri())
        finally:
            browser.quit()


def start_browser(folder: str) -> Any:
    """Chromium without a window.

    Raises:
        UserError: the browser, its driver or selenium is missing.
    """
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if find_spec("selenium") is None or binary is None or driver is None:
        raise UserError(
            "selenium, chromium or chromedriver is missing: scripts/install dev; apt install "
            "chromium-driver"
        )
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    flags = "headless no-sandbox disable-gpu hide-scrollbars".split()
    for flag in (*flags, f"user-data-dir={folder}/profile"):
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def measure(browser: Any, address: str) -> None:
    """Print the time of loading the page, first translations included, of drawing a sentence of 22
    words, and of translating a longer one by the first run."""
    trials = []
    for _ in range(NUM_TRIALS):
        browser.get("about:blank")
        browser.get(address)
        trials.append(browser.execute_async_script(READY))
    print(f"ready: {summary(trials)}")
    print(
        "a sentence of 22 words: "
        f"{summary([browser.execute_script(DRAW, LONG) for _ in range(3 * NUM_TRIALS)])}"
    )
    times, lengths = zip(
        *(browser.execute_async_script(TRANSLATE, LONGER) for _ in range(3 * NUM_TRIALS)),
        strict=True,
    )
    print(f"a translation of {lengths[0]} tokens: {summary(times)}")


def summary(trials: Sequence[float]) -> str:
    return f"median {median(trials):.0f} ms, fastest {min(trials):.0f} ms"


def photograph(browser: Any, address: str) -> None:
    """Write the pictures: the page; attention that is forced; the beam search as a tree."""
    show(browser, address)
    save(browser, PLOTS / "page.png", "#main")
    show(browser, f"{address}#text={SENTENCE}")
    browser.execute_script(FORCE, 9, 4)  # “red” looks at “junge”, young
    save(browser, PLOTS / "page-forced.png", "#run-0")
    show(browser, f"{address}#text=Der kleine Hund, den die Frau sieht, schläft heute.")
    browser.execute_script(BEAM)
    save(browser, PLOTS / "page-beam.png", "#run-0")


def show(browser: Any, address: str) -> None:
    browser.get(
        "about:blank"
    )  # an address that differs in its fragment alone would not load the page again
    size = {"width": WIDTH, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)


def save(browser: Any, path: Path, selector: str) -> None:
    """Write a picture of an element."""
    box = browser.execute_script(
        f"return JSON.stringify(document.querySelector('{selector}').getBoundingClientRect())"
    )
    clip = {**{key: json.loads(box)[key] for key in ("x", "y", "width", "height")}, "scale": 1}
    shot = browser.execute_cdp_cmd(
        "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
    )
    image = Image.open(io.BytesIO(b64decode(shot["data"]))).convert("RGB")
    image.quantize(NUM_COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB")
