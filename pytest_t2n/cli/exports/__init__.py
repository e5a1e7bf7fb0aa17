"""Commands that write archives."""
