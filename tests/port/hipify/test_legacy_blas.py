"""cuBLAS's first interface: calls without a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from port.hipify import compat_header, convert, legacy_blas
from port.hipify.mapping import Mapping
from tests.port.hipify.one_file import output, reports

if TYPE_CHECKING:
    from pathlib import Path

TOP = "#include <cublas.h>\n"


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("cublasSscal(n, 2.0f, x, 1);", "portBlasSscal(n"),
        ("float r = cublasSdot(n, x, 1, y, 1);", "portBlasSdot(n"),
        ("cublasDgemm('n', 't', m, n, k, 1.0, a, m, b, n, 0.0, c, m);", "portBlasDgemm('n'"),
        ("cublasZdrot(n, x, 1, y, 1, c, s);", "portBlasZdrot(n"),
        ("cublasStrmm('L', 'U', 'N', 'N', m, n, 1.0f, a, m, b, m);", "portBlasStrmm('L'"),
        ("cublasInit(); cublasShutdown();", "portBlasInit(); portBlasShutdown();"),
        ("if (cublasAlloc(n, 4, (void **)&p)) cublasFree(p);", "portBlasFree(p)"),
        ("cublasStatus status = cublasGetError();", "hipblasStatus_t status = portBlasGetError"),
    ],
)
def test_call_without_a_handle_is_carried(call: str, wanted: str) -> None:
    source = f"{TOP}void f() {{ {call} }}\n"
    assert wanted in output(source)
    assert reports(source) == []


def test_call_with_a_handle_is_renamed() -> None:
    text = output("#include <cublas_v2.h>\nint r = cublasSscal(h, n, &two, x, 1);\n")
    assert "hipblasSscal(h" in text
    assert "portBlas" not in text


def test_name_without_arguments_is_the_first_interface_where_the_tree_has_no_other() -> None:
    assert "#define scale portBlasSscal" in output(f"{TOP}#define scale cublasSscal\n")


def test_name_without_arguments_is_reported_where_the_tree_has_both(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "a.h").write_text(f"{TOP}#define scale cublasSscal\n")
    (source / "b.cpp").write_text("#include <cublas_v2.h>\n")
    found = convert(source, tmp_path / "out").conversion.findings
    places = [(each.file, each.line, each.rule, each.severity) for each in found]
    assert ("a.h", 2, "library-interface", "error") in places


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("cublasSscal", "void portBlasSscal(\n    int a0,\n    float a1,\n    float *a2,\n"),
        ("cublasIsamax", "int portBlasIsamax(\n    int a0,\n    const float *a1,\n    int a2)"),
        ("cublasSspr", "void portBlasSspr(\n    char a0,\n    int a1,\n    float a2,\n"),
        ("cublasSrotm", "    int a4,\n    const float *a5)"),
    ],
)
def test_prototype_is_that_of_the_first_interface(name: str, wanted: str) -> None:
    mapping = Mapping("6.4")
    text = compat_header.render([legacy_blas.asked_for(name)], mapping).decode()
    assert wanted in text


def test_product_in_place_takes_its_second_matrix_twice_where_hip_wants_a_third() -> None:
    asked = legacy_blas.asked_for("cublasStrmm")
    newer = legacy_blas.find(asked, Mapping("6.4"))
    older = legacy_blas.find(asked, Mapping("5.2"))
    assert newer is not None
    assert older is not None
    assert newer.text.count("a9, a10") == 2
    assert older.text.count("a9, a10") == 1
