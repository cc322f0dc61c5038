"""How fast, how lean and how small: measurements on the real server, run by ``make bench``."""
