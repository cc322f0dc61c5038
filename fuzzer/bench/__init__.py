"""How good, how fast, how lean: what ``stalefuzz bench`` measures."""
