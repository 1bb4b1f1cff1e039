"""What the code means: names, control flow, values, how often it runs; the only evaluator, and no rule is known."""
