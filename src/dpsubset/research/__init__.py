"""Studies of the mechanisms, on made-up data or without privacy; no release comes from here."""
