"""Room 5: files of known failures, and how they judge a cell."""
