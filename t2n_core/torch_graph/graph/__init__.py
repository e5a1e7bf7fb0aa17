"""The captured model as a plain graph."""
