"""Transitions that no update has used yet, their returns, and the statistics of episodes."""
