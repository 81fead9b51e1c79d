"""What sending costs, measured against goals: ``python -m benchmarks``."""
