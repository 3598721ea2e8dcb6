"""A headless browser, and how the tests look at a page in it. Importing this without selenium skips
a test module, so the tests take from here what they need of it."""

import shutil

import pytest

selenium = pytest.importorskip(
    "selenium", reason="selenium is not installed: it comes with the dev extra"
)

from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402, F401
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402, F401
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402, F401

FLAGS = (
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking "
    "disable-component-update disable-sync disable-dev-shm-usage"
).split()
# WCAG 2.2: the ratio of text to what lies behind it, of every text on the page
CONTRAST = """
const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const scaleOf = (color) => (color.startsWith('color(') ? 255 : 1);
const numbers = (color) => color.match(/[\\d.]+/g).map((part) => part * scaleOf(color));
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const color = numbers(getComputedStyle(node).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color;
  }
};
const failures = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  if (!own || !node.getClientRects().length || node.closest('script, [disabled]')) continue;
  const style = getComputedStyle(node);
  const isDrawn = node instanceof SVGElement;
  const foreground = light(numbers(isDrawn ? style.fill : style.color));
  const pair = [foreground, light(behind(node))].sort((a, b) => a - b);
  const ratio = (pair[1] + 0.05) / (pair[0] + 0.05);
  const text = node.textContent.slice(0, 30);
  if (ratio < 4.5) failures.push(`${ratio.toFixed(2)} ${node.tagName} ${text}`);
}
return failures;
"""


def start_browser(user_data_dir):
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no chromium or chromedriver here: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={user_data_dir}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


def show(browser, address, *, width=1280, height=900, scheme="light"):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {
            "name": "prefers-reduced-motion",
            "value": "reduce",
        },  # or a click would have to wait for the scrolling
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get_log("browser")  # of the page before
    browser.get(address)
    assert browser.get_log("browser") == []


def one(browser, selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def every(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def focused(browser):
    return browser.switch_to.active_element
