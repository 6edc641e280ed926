"""Turn one CUDA C++ source tree into hardware-specific wheels, and prove what each links."""
