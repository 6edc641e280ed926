"""Members that share a name with CUDA's: the declaration and every use keep it together."""

from __future__ import annotations

import re

import pytest

from tests.port.hipify.one_file import convert, output, reports

_USE = "int use(Table* t, void* p) { return t->cudaFree(p) + cudaFree(p); }\n"


@pytest.mark.parametrize(
    "member",
    [
        "decltype(&cudaFree) cudaFree;",
        "decltype(::cudaFree)* cudaFree;",
        "__typeof__(cudaFree) *cudaFree = nullptr;",
        "std::function<decltype(cudaFree)> cudaFree;",
        "std::decay_t<decltype(cudaFree)> cudaFree{};",
        "using F = decltype(&cudaFree); F cudaFree;",
        "union { decltype(&cudaFree) cudaFree; void* raw; };",
    ],
)
def test_member_with_the_type_of_the_function_it_is_named_for(member: str) -> None:
    text = output(f"struct Table {{ {member} }};\n{_USE}")
    assert re.search(r"\b(?:decltype|__typeof__)\((?:&|::)?hipFree\)", text)
    assert "t->cudaFree(p) + hipFree(p)" in text
    assert len(re.findall(r"\bcudaFree\b", text)) == 2


@pytest.mark.parametrize(
    "member", ["int (*cudaFree)(void*);", "__typeof__(&cudaFree) cudaFree;", "int cudaFree;"]
)
def test_member_of_a_structure_without_a_name(member: str) -> None:
    text = output(
        f"static struct {{ {member} }} table;\nint go(void* p) {{ return table.cudaFree == 0; }}\n",
        "a.c",
    )
    assert "table.cudaFree == 0" in text
    assert member.replace("&cudaFree", "&hipFree") in text


def test_members_whose_hip_names_would_be_one_stay_apart() -> None:
    text = output(
        "struct Hooks { decltype(&cudaMalloc) cudaMalloc; decltype(&cuMemAlloc) cuMemAlloc; };\n"
    )
    assert re.search(r"\) cudaMalloc; .*\) cuMemAlloc;", text)


def test_member_function_is_meant_inside_of_bodies_but_not_before_it_is_declared() -> None:
    text = output(
        "struct Pool {\n"
        "  cudaError_t (*saved)(void*) = cudaFree;\n"
        "  cudaError_t twice(void* p) { return cudaFree(p); }\n"
        "  cudaError_t cudaFree(void* p) { return ::cudaFree(p); }\n"
        "};\n"
    )
    assert "(*saved)(void*) = hipFree;" in text
    assert "twice(void* p) { return cudaFree(p); }" in text
    assert "hipError_t cudaFree(void* p) { return ::hipFree(p); }" in text


def test_member_made_by_a_macro_beside_a_written_one_is_reported() -> None:
    found = reports(
        "#define ENTRY(n) decltype(&n) n\n"
        "struct One { decltype(&cudaFree) cudaFree; };\n"
        "struct Two { ENTRY(cudaFree); };\n"
    )
    assert (3, 20, "own-name", "cudaFree") in found


def test_elaborated_type_in_an_alias_is_no_declaration() -> None:
    text = output("namespace mine { using Code = enum cudaError; struct cudaDeviceProp; }\n")
    assert "using Code = enum hipError_t;" in text
    assert "struct cudaDeviceProp;" in text


def test_collective_names_that_the_release_lacks_are_reported() -> None:
    source = (
        "#include <nccl.h>\nint go(ncclComm_t c, void* p) {\n  return ncclMemAlloc(&p, 8);\n}\n"
    )
    assert (3, 10, "no-counterpart", "ncclMemAlloc") in reports(source)
    assert not reports(source, rocm="7.1")


@pytest.mark.parametrize("spelled", ['"nccl_net.h"', "<nccl_net.h>"])
def test_header_of_the_collectives_network_plugins_moves(spelled: str) -> None:
    result = convert(f"#include {spelled}\n".encode(), "a.cpp")
    assert result.data == f"#include {spelled[0]}rccl/nccl_net.h{spelled[-1]}\n".encode()


def test_enumerator_of_a_scoped_enumeration_keeps_its_name_where_it_is_declared() -> None:
    text = output(
        "namespace mine { enum class Code : int { cudaErrorUnknown = 4, none }; }\n"
        "int code() { return (int)mine::Code::cudaErrorUnknown + cudaErrorUnknown; }\n"
    )
    assert "{ cudaErrorUnknown = 4, none }" in text
    assert "mine::Code::cudaErrorUnknown + hipErrorUnknown;" in text


def test_member_template_keeps_its_name_where_template_is_written() -> None:
    text = output(
        "template <class T> struct Pool { template <class U> U cudaMemset(U u); };\n"
        "template <class T> int use(Pool<T>& p) { return p.template cudaMemset<int>(3); }\n"
    )
    assert "U cudaMemset(U u)" in text
    assert "p.template cudaMemset<int>(3)" in text


@pytest.mark.parametrize(
    "use",
    [
        "using A = mine::Table; int go(void* p) { return A::cudaFree(p); }",
        "typedef mine::Table A; int go(void* p) { return A::cudaFree(p); }",
        "namespace ns = mine; using A = ns::Table; using B = A; int g() { return B::cudaFree(0); }",
        "struct Big : public mine::Table { int go(void* p) { return Big::cudaFree(p); } };",
        "template <int N> struct Big final : mine::Table {}; int g() { return Big::cudaFree(0); }",
        "struct Big : mine::Table { int go(void* p) { return cudaFree(p); } };",
        "template <class Api, typename T> int go(T* p) { return Api::cudaFree(p); }",
    ],
)
def test_own_name_through_another_name_of_its_class(use: str) -> None:
    text = f"namespace mine {{ struct Table {{ static int cudaFree(void* p); }}; }}\n{use}\n"
    assert not reports(text)
    assert output(text) == text


def test_qualifier_that_leads_nowhere_is_reported_all_the_same() -> None:
    text = (
        "namespace mine { struct Table { static int cudaFree(void* p); }; }\n"
        "using A = other::Thing;\n"
        "int go(void* p) { return A::cudaFree(p); }\n"
    )
    assert reports(text) == [(3, 29, "qualified-name", "cudaFree")]
