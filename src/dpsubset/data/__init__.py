"""Tables: readers, the quantizer, and the exact sums that selections and fits are computed from."""
