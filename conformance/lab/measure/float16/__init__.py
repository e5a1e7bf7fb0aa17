"""Float16 on the architectures of the suite `models`: sizes, times and errors, and the page of the documentation."""
