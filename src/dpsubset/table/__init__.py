"""Everything with values in it, from a cell to exact sums: private, every module."""
