"""Real Pong: many emulators in a few subprocesses, as one gymnasium vector environment."""
