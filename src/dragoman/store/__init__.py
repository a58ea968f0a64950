"""Stores: one contract (`engine.ports.Store`), one package for each database."""
