"""Every speed claim: ratios against the raw limit, measured in one run."""
