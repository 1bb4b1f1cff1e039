"""Code in another place: brackets, comments, imports."""
