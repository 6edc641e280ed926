"""Write the tables that `port.hipify` ships: names, signatures and values read from the headers
of CUDA and of each HIP release. Run as `python -m port.hipify.tables_gen`; needs libclang's Python
bindings (`pip install libclang`).
"""
