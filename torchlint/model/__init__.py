"""What the code means: names, kinds, devices, frequency, grad mode."""
