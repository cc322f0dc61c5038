"""Tiny random models and adapters, written from a seed."""
