"""Scorers: what ranks the next tokens besides the model. The contract is `search/base.py`."""
