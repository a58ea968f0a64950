"""Composition root: the only place where all parts meet."""
