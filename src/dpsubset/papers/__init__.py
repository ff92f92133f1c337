"""What the papers need and a selection does not: chains, tracing attacks, minimax rates, means."""
