"""Servers under test: one adapter a server, and the launchers of those that we start."""
