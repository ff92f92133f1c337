"""Tables: readers, the quantizer, and the exact sums that selections and fits are computed from.

Cells, records and sums are private. They are deterministic functions of the table. Names and types
of columns are public.
"""
