"""Decisions: pure rules over frozen commands, events and states. No I/O, clock or randomness."""
