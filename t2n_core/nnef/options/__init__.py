"""Choices of the way archives are written, as values that emitters and rules read."""
