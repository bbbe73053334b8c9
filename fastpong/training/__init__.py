"""A run: its loop, its trainer, its folder, and the evaluation of its weights."""
