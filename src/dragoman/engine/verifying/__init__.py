"""Proof that nothing was lost or changed, in the store and in a file by itself."""
