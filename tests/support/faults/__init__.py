"""Every failure, caused on purpose and judged by the sandbox's witness."""
