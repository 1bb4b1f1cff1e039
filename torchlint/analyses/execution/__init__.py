"""Which code runs once, rarely, per batch, compiled."""
