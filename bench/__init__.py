"""What measures fastpong and its peers. Run from the root of the repository: ``python -m bench.NAME``."""
