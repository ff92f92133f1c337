"""Search over supports. Scores, partitions and masses are private.

The race, and the envelopes and regions that it draws from, take randomness as an argument. Nothing
else here is random: `bounds` and `solvers` are deterministic functions of the table.
"""
