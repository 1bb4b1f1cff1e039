"""Where values come from and what becomes of them."""
