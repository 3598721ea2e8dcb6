"""Prepare a corpus for training, from Python and for `seq2seq prepare`."""

from typing import Unpack

from seq2seq_attn.api.settings import ConfigNames, OwnText, find_layers
from seq2seq_attn.config import load_config, with_default
from seq2seq_attn.config.load import Settings
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UsageError

CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""Corpora by name, each with the packaged configuration for preparing it."""


def prepare(
    corpus: str | None = None,
    *,
    config: ConfigNames = None,
    settings: Settings | None = None,
    **text: Unpack[OwnText],
) -> PreparedCorpus:
    """Read, check and tokenize a corpus: `multi30k` or `captions`, that of a configuration, or a
    text of one's own. `config`, `settings` and `text` are those of `train_model`.

    Raises:
        UsageError: settings are not valid, or both a corpus and something else is named.
        UserError: the corpus cannot be read, downloaded or written.
    """
    if corpus is not None:
        other = "--train" if "train_text" in text else "--config"
        if config or "train_text" in text:
            raise UsageError(
                f"{corpus!r} and {other}: name a corpus, or give a text or a configuration, not "
                "both"
            )
        if corpus not in CORPUS_CONFIGS:
            raise UsageError(
                f"corpus {corpus!r}: expected {', '.join(CORPUS_CONFIGS)}; for others use -c CONFIG"
            )
        config = CORPUS_CONFIGS[corpus]
    layers = find_layers(config, settings, text)
    loaded = load_config(with_default(layers.config_names), *layers.settings)
    split_names(loaded.data)  # rejects an invalid corpus before anything is read
    return prepare_corpus(loaded)
