"""Deciders about intents."""
