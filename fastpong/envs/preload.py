"""Loads the compiled console: the fork server imports this, once for all of its children."""

from fastpong.console.games import first_state

first_state()
