"""Capture overrides: functions that replace PyTorch's while a model is captured."""
