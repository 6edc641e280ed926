"""What messages for people share: counts that read well, names that no terminal obeys."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`number` things.

    >>> counted(1, "file"), counted(3, "file")
    ('1 file', '3 files')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str) -> str:
    """`text` on one line, with nothing in it that a terminal would obey or could not show."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
