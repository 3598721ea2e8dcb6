"""Draw the pictures of the demo's page in docs/plots, with Chromium."""

import io
import json
import shutil
from base64 import b64decode
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image

from scripts.laboratory.demo import CONFIGS, SENTENCE
from scripts.laboratory.harness.records import ROOT
from seq2seq_attn.errors import UserError
from seq2seq_attn.export.page import export_page
from seq2seq_attn.run import Run

PLOTS = ROOT / "docs" / "plots"
WIDTH = 1000
"""of a picture, in pixels"""
NUM_COLORS = 48
"""of a picture: enough for text and ribbons, and a third of the bytes of all colors"""
# a click on a word of the translation, then on a word of the sentence, by position
FORCE = """
document.querySelectorAll('#run-0 .row.target .word')[arguments[0]].click();
document.querySelectorAll('#run-0 .row:not(.target) .word')[arguments[1]].click();
"""
BEAM = "document.querySelector('#run-0 details:last-of-type summary').click()"


def main(arguments: Sequence[str] = ()) -> None:
    """Draw the pictures."""
    with TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        export_page([Run(ROOT / path) for path in CONFIGS], page)
        browser = start_browser(folder)
        try:
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
