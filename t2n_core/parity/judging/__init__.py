"""Judgements: tolerances that a check requires in place of a level, and the user's own metrics."""
