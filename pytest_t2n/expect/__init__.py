"""Layer 5: files of expected failures, and how they judge a cell."""
