"""How kernels are compiled and cached, and what LLVM vector code is made of. Knows nothing of Pong."""
