"""How it is written down: entries, their names and versions, their chain, their folds."""
