"""The costs of sending, compared with goals: ``python -m benchmarks``."""
