"""How operators are written for tract, where that is not the plain statement: functions of an emitter, by operator."""
