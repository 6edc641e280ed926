"""`python -m port.verify`: starts the child that reads ELF files, then the command beside it."""

from __future__ import annotations

from port.verify import child

if __name__ == "__main__":
    child.start()
    # Loaded here, while the child loads what it needs: loading is half of a small wheel's time.
    from port.cli import run
    from port.verify.command import command

    run(command)
