"""Without the compiler nothing is kept in a cache."""

from fastpong.kernels.compile.simd import PLAIN

collect_ignore = ["compile/test_cache.py"] if PLAIN else []
