"""The plain-files face: the ledger as files that people read and edit, and the drop-in inbox."""
