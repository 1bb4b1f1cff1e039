"""What expressions may hold."""
