"""Screenshots of the running pages, for the documentation."""
