"""What comes to the CPU, and what for."""
