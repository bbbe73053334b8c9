"""How kernels are compiled and cached, and LLVM vector code. Knows nothing of Pong."""
