"""What is done: the command line, campaigns, servers, references and triage."""
