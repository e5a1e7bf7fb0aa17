"""The statements that a program is drawn from: each function adds some to a value, or returns None if it cannot."""
