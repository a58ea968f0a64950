"""The deciders: `command, read, now` -> events, or a refusal. Their table is `core/decide.py`."""
