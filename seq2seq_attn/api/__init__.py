"""The Python API: the functions that the commands call. `seq2seq_attn` exports some of them.

Each file holds one of these functions and its helpers. The function `load` is in
`translate/load.py`.
"""
