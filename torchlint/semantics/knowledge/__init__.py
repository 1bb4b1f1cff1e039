"""Facts about APIs and conventions, as data."""
