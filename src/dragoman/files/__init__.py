"""Files: the ledger as files that people read and edit, the inbox folder, and archives."""
