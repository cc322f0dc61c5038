"""One module a subcommand of ``stalefuzz``."""
