"""Layer 7: the processes of a session: its start, the controller with its ledger and summary, workers, the recorder."""
