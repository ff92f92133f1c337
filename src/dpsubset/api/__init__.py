"""The verbs of the public API, one file each, and the pipeline that they share.

Requests are public. `sensitive_table` is the table itself. `driver` debits the ledger before values
are read, and opens the source of randomness.
"""
