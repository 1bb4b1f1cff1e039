"""Rules about Python loops that one operation could replace."""
