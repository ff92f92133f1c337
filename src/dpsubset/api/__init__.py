"""The functions of the public API that read a table, one file each, and their common pipeline.

Requests are public. `sensitive_table` wraps the private table. `driver` debits the ledger before
values are read, and opens the source of randomness.
"""
