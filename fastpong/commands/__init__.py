"""One module for each command of the command line that does more than one call."""
