"""Names that a macro makes of CUDA's, and that the tree spells out elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from port.hipify import convert
from tests.port.hipify.one_file import output, reports

if TYPE_CHECKING:
    from pathlib import Path

HOOK = "#define HOOK(name, type) type hook_##name(void *at) { return call(#name, at); }\n"


def test_name_that_is_spelled_out_becomes_what_the_macro_makes(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "hook.h").write_text(HOOK)
    (source / "a.c").write_text('#include "hook.h"\nHOOK(cudaFreeHost, cudaError_t)\n')
    (source / "b.c").write_text("int hook_cudaFreeHost(void *);\nint n = hook_cudaFreeHost(0);\n")
    found = convert(source, tmp_path / "out").conversion.findings
    assert not found
    assert "HOOK(hipHostFree, hipError_t)" in (tmp_path / "out" / "a.c").read_text()
    assert (tmp_path / "out" / "b.c").read_text().count("hook_hipHostFree") == 2


def test_name_for_which_there_is_a_wrapper_becomes_the_librarys_own() -> None:
    text = output(f"{HOOK}HOOK(cuMemFree, CUresult)\nint n = hook_cuMemFree(0);\n", "a.c")
    assert "HOOK(hipFree, hipError_t)" in text
    assert "hook_hipFree(0)" in text


def test_of_two_names_that_become_one_the_drivers_stays_and_is_reported() -> None:
    source = f"{HOOK}HOOK(cuMemFree, int)\nHOOK(cudaFree, int)\nint n = hook_cudaFree(0);\n"
    text = output(source, "a.c")
    assert "HOOK(cuMemFree, int)\nHOOK(hipFree, int)\nint n = hook_hipFree(0);" in text
    assert [each for each in reports(source, "a.c") if each[2] == "pasted-name"] == [
        (2, 6, "pasted-name", "cuMemFree"),
    ]
    assert output(text, "a.c") == text


def test_macros_that_make_the_same_names_are_given_the_same() -> None:
    """The name of the table's entry is spelled nowhere: two macros make it."""
    table = "#define ENTRY(name) {#name, hook_##name, &before_##name}\n"
    before = "#define BEFORE(name) void *before_##name;\n"
    source = (
        f"{HOOK}{before}{table}HOOK(cuMemFree, int)\nHOOK(cudaFree, int)\nBEFORE(cuMemFree)\n"
        "BEFORE(cudaFree)\nstruct entry all[] = {ENTRY(cuMemFree), ENTRY(cudaFree)};\n"
        "int hook_cuMemFree(void *);\n"
    )
    text = output(source, "a.c")
    assert "BEFORE(cuMemFree)\nBEFORE(hipFree)\n" in text
    assert "{ENTRY(cuMemFree), ENTRY(hipFree)}" in text


def test_names_that_nothing_spells_out_are_renamed_as_ever() -> None:
    text = output(f"{HOOK}HOOK(cuMemFree, int)\nHOOK(cudaFree, int)\n", "a.c")
    assert "HOOK(hipFree, int)" in text
    assert "cudaFree" not in text
