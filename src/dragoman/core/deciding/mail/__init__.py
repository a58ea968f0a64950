"""Deciders about letters, reservations and waves."""
