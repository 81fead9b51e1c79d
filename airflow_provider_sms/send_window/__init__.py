"""The hours in which people may be texted."""
