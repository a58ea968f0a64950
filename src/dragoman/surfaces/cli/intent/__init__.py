"""`dragoman intent`, `delegate` and `why`."""
