"""What a conversion has to say about a place in the sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One report entry. Only an `error` changes the exit status.

    `file` is relative to the source folder, `line` and `column` are 1-based, counted in bytes of
    the source as given; 0 stands for the file as a whole.
    """

    file: str
    line: int
    column: int
    rule: str
    severity: Severity
    name: str
    message: str
    remedy: str


def of_file(path: str, rule: str, message: str, remedy: str) -> Finding:
    """An error about the file `path` as a whole."""
    return Finding(path, 0, 0, rule, "error", path.rsplit("/", 1)[-1], message, remedy)


MEANINGS = {
    "case-twins": "Two files differ in upper and lower case alone",
    "compat-clash": "A file has the name of the generated compat header",
    "folder-suffix": "A folder has the suffix of a source file",
    "include-ambiguous": "A CUDA header was meant, or a file of the project with its name",
    "include-macro": "A macro decides which header is included",
    "include-missing": "A header that looks like CUDA's was not found",
    "include-unmapped": "A CUDA header has no counterpart",
    "link-dangling": "A link leads nowhere",
    "link-loop": "A link to a folder is not followed",
    "link-outside": "A link leads out of the source folder",
    "no-counterpart": "A CUDA name has no counterpart",
    "not-looked-at": "A file that names CUDA is copied as it is",
    "output-blocked": "A link or folder stands where an output goes",
    "output-edited": "An output was edited by hand",
    "output-foreign": "A file that hipify did not write stands where an output goes",
    "own-name": "The project's own name is spelled like one of CUDA's",
    "qualified-name": "A CUDA name stands behind a qualifier that nothing declares",
    "source-encoding": "A file is in an encoding that compilers do not read",
    "unknown-macro": "A condition tests a name like CUDA's that nothing defines",
    "stand-in": "A name that HIP lacks was replaced by something that compiles and does not work",
    "stale-output": "A file of the output folder is not what the conversion makes",
    "unknown-name": "A name looks like CUDA's, but is not known",
    "unreadable": "A file cannot be read",
}
"""Every rule id of a report that is not of `port.hipify.rules`, and what it says; ids keep their
meaning."""
