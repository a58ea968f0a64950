"""Deciders about agents and people."""
