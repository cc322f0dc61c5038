"""What is recorded and shown: events, records and their renderings."""
