"""How the shipped agent was made: kept as a record, run by hand."""
