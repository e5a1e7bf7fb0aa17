"""Room 7: the processes of a session: the controller, its ledger and summary, and workers."""
