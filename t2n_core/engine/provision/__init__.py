"""Which engines exist, which of them are wanted, and where their files are on this machine."""
