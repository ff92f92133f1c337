"""The ledger of a data set: what was spent on it, by whom and for what. Holds no private value."""
