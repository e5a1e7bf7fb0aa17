"""An exported archive with what it was made from, and its check."""
