"""What is right: observations, noise, comparison, evidence and verdicts."""
