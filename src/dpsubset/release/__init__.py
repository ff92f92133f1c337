"""What may leave: the drawn support with its guarantee, and the statement about it."""
