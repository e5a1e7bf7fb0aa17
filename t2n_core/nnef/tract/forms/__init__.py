"""Lowerings of operators to tract, where that is not the plain operation: functions of an emitter, by operator."""
