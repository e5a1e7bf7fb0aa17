"""Judgements: tolerances that a check requires instead of a level, and the user's own metrics."""
