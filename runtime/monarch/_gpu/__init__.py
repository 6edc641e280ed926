"""GPU devices, memory, streams and collectives over the native module of this distribution.

Importing this package loads nothing native; the first use of a device does.
"""
