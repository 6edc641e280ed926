"""`python -m port.hipify`."""

from port.cli import run
from port.hipify.cli import main

run(main)
