"""Where it is kept: one contract (`engine.ports.Store`), one folder for each kind of store."""
