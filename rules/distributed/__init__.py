"""Rules about training on several devices."""
