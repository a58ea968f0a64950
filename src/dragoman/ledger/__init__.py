"""The format of the ledger: entries, their codec and hash chain, the tree, checkpoints, folds."""
