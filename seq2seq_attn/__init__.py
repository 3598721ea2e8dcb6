"""Neural machine translation with recurrent networks and attention.

>>> from seq2seq_attn import load                                  # doctest: +SKIP
>>> load("runs/multi30k").translate(["Ein Hund rennt."])[0].text   # doctest: +SKIP
'A dog runs.'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seq2seq_attn._version import __version__

if TYPE_CHECKING:
    from seq2seq_attn.translate.translator import Translation, Translator, load

__all__ = ["Translation", "Translator", "__version__", "load"]


def __getattr__(name: str) -> object:
    # Imported on demand: `import seq2seq_attn` (and so `seq2seq --help`) must not import torch.
    if name in ("Translation", "Translator", "load"):
        from seq2seq_attn.translate import translator

        return getattr(translator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
