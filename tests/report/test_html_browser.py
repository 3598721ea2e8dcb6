"""The HTML pages in a real browser: sort, filter, open maps by mouse and keyboard, dark, narrow; screenshots on the way."""

from __future__ import annotations

import shutil

import pytest

from seq2seq_attn.report.html import TranslatedLine, html_maps
from tests.report.html_reports import make_report, trained_map

pytest.importorskip("selenium", reason="selenium is not installed: pip install -e .[dev]")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
