"""The zoo: a small honest inference server in which single realistic mistakes can be switched on."""
