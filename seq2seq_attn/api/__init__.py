"""The Python API: what the commands call, and `seq2seq_attn` offers by name.

Each file has one function and the work that it does. `load` is in `translate/load.py`.
"""
