"""Everything that can break, broken on purpose, and judged by what the service's own log holds."""
