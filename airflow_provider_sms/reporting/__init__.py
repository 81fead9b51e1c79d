"""The result of a send: the summary and the row report."""
