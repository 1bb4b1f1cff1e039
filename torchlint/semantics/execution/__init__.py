"""How often code runs, under which conditions, in which grad mode."""
