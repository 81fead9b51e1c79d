"""What a send came to: the summary and the row report."""
