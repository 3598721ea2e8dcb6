"""The embedded German-English corpus: lexicon, grammar, generator."""
