"""Tokens and characters that mark something in a line of tokens."""

SPACE = "▁"
"""U+2581, SentencePiece's mark for a space."""
SOURCE_END = "\t"
"""The token after a source that another follows, and after a sentence that is marked. Its id is
EOS. No tokenizer makes it from text, because tabs become spaces first."""
