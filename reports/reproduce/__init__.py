"""Reproducers of a finding that need no stalefuzz, and the issue text."""
