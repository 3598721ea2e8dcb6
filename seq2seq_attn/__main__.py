"""`python -m seq2seq_attn`, and the installed command `seq2seq`."""

from __future__ import annotations

from seq2seq_attn.cli import main

if __name__ == "__main__":
    main()
