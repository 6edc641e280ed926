"""Convert CUDA C++ sources to HIP, and report what has no counterpart."""
