"""The documentation site: made of the Markdown that the repository holds, and of the rules themselves."""
