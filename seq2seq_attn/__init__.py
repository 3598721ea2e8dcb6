"""Neural machine translation with recurrent networks and attention.

>>> import seq2seq_attn                                            # doctest: +SKIP
>>> run = seq2seq_attn.train_model("quickstart", {"seed": 2})      # doctest: +SKIP
>>> seq2seq_attn.evaluate(run.path).summary                        # doctest: +SKIP
>>> translator = seq2seq_attn.load()                               # doctest: +SKIP
>>> sentence = "Der kleine Hund, den die Frau sieht, schläft heute."  # doctest: +SKIP
>>> translator.translate([sentence])[0].text  # doctest: +SKIP
'The small dog that the woman sees is sleeping today.'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "1.0.0"

if TYPE_CHECKING:
    from seq2seq_attn.api.compare import compare
    from seq2seq_attn.api.documents import translate_document
    from seq2seq_attn.api.evaluate import evaluate
    from seq2seq_attn.api.train import train_model
    from seq2seq_attn.model.variants import import_variants
    from seq2seq_attn.translate.attention_map import AttentionMap
    from seq2seq_attn.translate.load import load
    from seq2seq_attn.translate.translation import Translation
    from seq2seq_attn.translate.translator import Translator

__all__ = [
    "AttentionMap",
    "Translation",
    "Translator",
    "__version__",
    "compare",
    "evaluate",
    "import_variants",
    "load",
    "train_model",
    "translate_document",
]

# Modules are imported on demand, so that `import seq2seq_attn` and `seq2seq --help` do not import
# torch.
_HOMES = {
    "AttentionMap": "translate.attention_map",
    "Translation": "translate.translation",
    "Translator": "translate.translator",
    "compare": "api.compare",
    "evaluate": "api.evaluate",
    "import_variants": "model.variants",
    "load": "translate.load",
    "train_model": "api.train",
    "translate_document": "api.documents",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
