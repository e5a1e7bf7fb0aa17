"""Evaluation of archives by the definitions of their operators, in a process with limits of memory and time."""
