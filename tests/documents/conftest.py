"""Translators that need no model."""

from types import SimpleNamespace

import pytest


def make_translator(translate):
    """A translator of one text that applies a function to it."""

    def translate_lines(lines, **options):
        for line in lines:
            yield [SimpleNamespace(text=translate(line), log_prob=-1.0)]

    source = SimpleNamespace(num_columns=1, vector_size=None)
    return SimpleNamespace(
        source_tokenizer=source, translate_lines=translate_lines, languages=("de", "en")
    )


@pytest.fixture
def unchanged():
    return make_translator(lambda line: " ".join(line.split()))


@pytest.fixture
def upper():
    """Translates into capitals, placeholders and tags too."""
    return make_translator(str.upper)
