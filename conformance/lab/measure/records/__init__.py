"""What files of records cost: a matrix of any size made from real records, and the measure of each command on it."""
