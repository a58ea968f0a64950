"""Background services: one file each, with `run_once(now)`; `scheduler` runs them in threads."""
