"""What loops go over, and what an iteration does."""
