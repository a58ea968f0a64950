"""Deciders about tasks."""
