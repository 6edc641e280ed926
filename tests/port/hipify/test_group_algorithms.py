"""Reductions and scans of cooperative groups, which HIP's header lacks."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from port.hipify import compat
from tests.hip_headers import clang_says
from tests.port.hipify.conversion import convert

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """\
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
struct Pair { float a; double b; };
__global__ void all(float *p, int *n, Pair *q) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  *p = cg::reduce(warp, *p, cg::plus<float>());
  *n += cg::reduce(cg::tiled_partition<8>(block), *n, cg::greater<int>());
  *n += cg::inclusive_scan(warp, *n) + cg::exclusive_scan(warp, *n, cg::bit_or<int>());
  auto some = cg::coalesced_threads();
  *q = cg::reduce(some, *q, [](const Pair &a, const Pair &b) { return Pair{a.a + b.a, b.b}; });
  cg::reduce_store_async(some, n, 1, cg::plus<int>());
}
"""

# A group on this machine: its threads are threads, and those of a group exchange words in step.
_GROUP = """\
#include <barrier>
#include <cstring>
#include <thread>
#include <vector>
struct { unsigned int x, y, z; } threadIdx, blockDim;
namespace cooperative_groups {
template <unsigned int size, class Parent> class thread_block_tile;
struct Group {
  unsigned int rank, count;
  std::vector<int> *words;
  std::barrier<> *step;
  unsigned int thread_rank() const { return rank; }
  unsigned int size() const { return count; }
  int shfl(int word, int from) const {
    (*words)[rank] = word;
    step->arrive_and_wait();
    const int found = (*words)[from];
    step->arrive_and_wait();
    return found;
  }
};
}
"""
_MAIN = """
namespace cg = cooperative_groups;
struct Pair { short low; long sum; };
int main() {
  int wrong = 0;
  for (unsigned int count : {1u, 2u, 3u, 5u, 8u, 31u, 32u}) {
    std::vector<int> words(count), faults(count);
    std::barrier<> step(count);
    int stored = -1;
    std::vector<std::thread> threads;
    for (unsigned int rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] {
        const cg::Group group{rank, count, &words, &step};
        const int last = count - 1, mine = rank;
        int bad = cg::reduce(group, mine, cg::plus<int>()) != last * (last + 1) / 2;
        bad += cg::reduce(group, 7 - mine, cg::less<int>()) != 7 - last;
        bad += cg::reduce(group, 7.5 - mine, cg::greater<double>()) != 7.5;
        const int bits = count > 2 ? 7 : (1 << count) - 1;
        bad += cg::reduce(group, 1 << (rank % 3), cg::bit_or<int>()) != bits;
        bad += cg::reduce(group, 6 - 4 * (mine > 0), cg::bit_and<int>()) != (count > 1 ? 2 : 6);
        bad += cg::reduce(group, 1, cg::bit_xor<int>()) != (int)count % 2;
        const auto both = [](const Pair &a, const Pair &b) {
          return Pair{a.low < b.low ? a.low : b.low, a.sum + b.sum};
        };
        const Pair pair = cg::reduce(group, Pair{(short)(mine - 3), 1L << 40}, both);
        bad += pair.low != -3 || pair.sum != (long)count << 40;
        cg::reduce_store_async(group, &stored, 2, cg::plus<int>());
        bad += cg::inclusive_scan(group, mine) != mine * (mine + 1) / 2;
        bad += cg::exclusive_scan(group, 2L) != 2L * mine;
        bad += cg::exclusive_scan(group, mine, cg::greater<int>()) != (mine > 0 ? mine - 1 : 0);
        const auto largest = [](const int &a, const int &b) -> const int & {
          return a < b ? b : a;
        };
        bad += cg::reduce(group, mine, largest) != last;
        // In order: an operation whose sides cannot be swapped.
        bad += cg::inclusive_scan(group, mine, [](int, int b) { return b; }) != mine;
        faults[rank] = bad;
      });
    for (auto &each : threads) each.join();
    for (int each : faults) wrong += each;
    wrong += stored != 2 * (int)count;
  }
  return wrong;
}
"""


def test_the_headers_become_pieces_of_the_compat_header(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(PROGRAM)
    done = convert(tmp_path / "src", tmp_path / "out")
    assert (done.status, done.report["findings"]) == (0, [])
    made = (tmp_path / "out" / "a.cu").read_text()
    assert made.count("#include <hip/hip_cooperative_groups.h>") == 3
    assert "cg::reduce(warp, *p, cg::plus<float>())" in made
    header = (tmp_path / "out" / "port_hip_compat.h").read_text()
    assert header.count(" reduce(") == header.count("void reduce_store_async(") == 1
    assert header.count(" inclusive_scan(const Group &group, T &&value, Op &&op)") == 1


def test_asking_whether_a_header_is_there_brings_no_piece(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.h").write_text(
        "#if __has_include(<cooperative_groups/scan.h>)\n#endif\n"
    )
    convert(tmp_path / "src", tmp_path / "out")
    made = (tmp_path / "out" / "a.h").read_text()
    assert made == "#if __has_include(<hip/hip_cooperative_groups.h>)\n#endif\n"


@pytest.mark.slow
@pytest.mark.parametrize("release", ["5.2", "5.7", "6.4", "7.1"])
@pytest.mark.parametrize("side", ["host", "device"])
def test_clang_compiles_them(tmp_path: Path, release: str, side: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.cu").write_text(PROGRAM)
    convert(tmp_path / "src", tmp_path / "out", "--rocm", release)
    done = clang_says(tmp_path / "out" / "a.cu", release, side, "c++14")
    assert done.returncode == 0, done.stderr


def test_they_give_what_cuda_gives(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip" / "hip_cooperative_groups.h").write_text(_GROUP)
    names = ("port_group_lanes", "port_group_reduce", "port_group_scan")
    text = "".join(compat.by_hand()[name]["text"] for name in names)
    (tmp_path / "a.cpp").write_text("#include <initializer_list>\n" + text + _MAIN)
    program = str(tmp_path / "a")
    command = [compiler, "-std=c++20", "-O1", "-pthread", "-D__HIP__", "-D__device__="]
    command += [f"-I{tmp_path}", str(tmp_path / "a.cpp"), "-o", program]
    subprocess.run(command, check=True)
    assert subprocess.run([program], timeout=120, check=False).returncode == 0
