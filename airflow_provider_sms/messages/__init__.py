"""Text and number to message: template, SMS parts, keys. Pure functions."""
