"""One rule is one module and one page of the same name."""
