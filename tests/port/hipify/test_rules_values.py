"""The rules for members of structures and for values of enumerations."""

from __future__ import annotations

import pytest

from tests.port.hipify.rules_on import rules_on


def test_members_follow_the_release() -> None:
    text = (
        "void f(CUmemAllocationProp* p) {\n"
        "  CUmemAllocationProp q = {.requestedHandleTypes = x};\n"
        "  p->requestedHandleTypes = q.requestedHandleTypes;\n"
        "  p->location.id = 1;\n"
        "}\n"
    )
    old = rules_on(text, "a.cpp", "6.4")
    assert old.text.count("requestedHandleType ") == 2
    assert "q.requestedHandleType;" in old.text
    assert rules_on(text, "a.cpp", "7.1").text == text
    assert not old.findings


def test_member_that_hip_lacks_is_reported() -> None:
    outcome = rules_on("int f(cudaDeviceProp& d) {\n  return d.mpsEnabled + d.warpSize;\n}\n")
    assert outcome.places("member-name") == [(2, 12, "mpsEnabled")]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cuDeviceGetAttribute(&v, 75, d);", ["enum-number"]),
        ("cudaDeviceGetAttribute(&v, (cudaDeviceAttr)16, d);", ["enum-number"]),
        ("auto a = static_cast<enum cudaDeviceAttr>(0x10);", ["enum-number"]),
        ("auto a = CUdevice_attribute{16};", ["enum-number"]),
        ("static_assert((int)cudaDevAttrMultiProcessorCount == 16);", ["enum-value"]),
        ("static_assert(16 == cudaDevAttrMultiProcessorCount);", ["enum-value"]),
        ("static_assert(static_cast<int>(cudaErrorInvalidValue) == 1);", []),
        ("cudaMemcpy(a, b, n, (cudaMemcpyKind)2);", []),
        ("CUdevice_attribute a = 75;", ["enum-number"]),
        ("CUdevice_attribute a;  f(a == 16);", ["enum-number"]),
        ("cudaMemcpyKind k = 2;", []),
        ("CUdevice_attribute a = b; int n = 16;", []),
        ("if (v == cudaDevAttrMultiProcessorCount) f(16);", []),
    ],
)
def test_numbers_for_enumerators(line: str, found: list[str]) -> None:
    assert rules_on(f"{line}\n", "a.cpp").at(1) == found


@pytest.mark.parametrize(
    "definition",
    [
        "#define WANTED 75",
        "#define WANTED (75)",
        "constexpr int WANTED = 75;",
        "static const unsigned first = 1, WANTED = 0x4bU;",
        "constexpr int WANTED{75};",
        "enum { OTHER = 74, WANTED };",
        "enum Mine : int { WANTED = 75, };",
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        "auto a = static_cast<CUdevice_attribute>(WANTED);",
        "cuDeviceGetAttribute(&v, WANTED, d);",
        "cuDeviceGetAttribute(&v, (CUdevice_attribute)WANTED, d);",
    ],
)
def test_named_constants_for_enumerators(definition: str, use: str) -> None:
    outcome = rules_on(f"{definition}\n{use}\n", "a.cpp")
    assert outcome.at(2) == ["enum-number"]
    (finding,) = outcome.findings
    assert "WANTED (75)" in finding.message


@pytest.mark.parametrize(
    "before",
    [
        "constexpr int WANTED = compute(75);",
        "int WANTED = 75;",
        "#define WANTED 75\n#undef WANTED\n#define WANTED 76",
        "const int WANTED = 75;\nvoid f(int WANTED);",
    ],
)
def test_names_that_are_not_one_constant_are_left_alone(before: str) -> None:
    text = f"{before}\nauto a = static_cast<CUdevice_attribute>(WANTED);\n"
    assert not rules_on(text, "a.cpp").findings


def test_member_of_an_enumeration_compared_with_a_number_follows_the_release() -> None:
    text = "bool f(cudaPointerAttributes* a) {\n  return a->type == 2 || a->device == 2;\n}\n"
    assert rules_on(text, "a.cpp", "5.7").places("enum-number") == [(2, 21, "2")]
    assert not rules_on(text, "a.cpp", "6.4").findings


def test_merged_case_labels_overloads_and_specialisations() -> None:
    text = (
        "void f(int e) { switch (e) {\n"
        "  case CUDA_ERROR_INVALID_VALUE: break;\n"
        "  case cudaErrorInvalidValue: break;\n"
        "  case cudaErrorNotReady: break; } }\n"
        "inline int of(CUresult a) { return 1; }\n"
        "inline int of(cudaError_t b) { return 2; }\n"
        "inline int of(cudaStream_t c) { return 3; }\n"
        "template <> struct Name<CUstream> { };\n"
        "template <> struct Name<cudaStream_t> { };\n"
        "template <> int code<CUresult>() { return 1; }\n"
        "template <> int code<cudaError_t>() { return 2; }\n"
    )
    assert [p[0] for p in rules_on(text, "a.cpp").places("merged-names")] == [3, 6, 9, 11]


@pytest.mark.parametrize("condition", ["asked", "(asked)", "static_cast<int>(asked)", "(int)asked"])
def test_number_as_a_case_label_of_an_enumeration_is_reported(condition: str) -> None:
    text = (
        "int kind(cudaDeviceAttr asked) {\n"
        f"  switch ({condition}) {{\n"
        "    case 16: return 1;\n"
        "    case cudaDevAttrWarpSize: return 2;\n"
        "  }\n"
        "  switch (asked ? 1 : 2) { case 75: return 4; }\n"
        "  return 0;\n"
        "}\n"
    )
    assert rules_on(text, "a.cpp").places("enum-number") == [(3, 10, "16")]
