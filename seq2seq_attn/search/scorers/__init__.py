"""Scorers change the scores that rank the next tokens. `search/base.py` defines the contract."""
