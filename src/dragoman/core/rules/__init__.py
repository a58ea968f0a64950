"""What deciders weigh by: owners, governance, scores, the adaptive threshold, entropy."""
