"""Single precision rounded another way than to nearest, against the rounding of the host."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from port.hipify import compat

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = """
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#pragma STDC FENV_ACCESS ON
#define __HIP__ 1
#define PORT_DEVICE static inline
static int __float_as_int(float x) { int to; memcpy(&to, &x, 4); return to; }
static float __int_as_float(int x) { float to; memcpy(&to, &x, 4); return to; }
"""
_MAIN = """
static float any() {
  static const float special[] = {0.0f, 1.0f, -1.0f, 3.0f, 1e30f, -1e38f, 3.4e38f, 1e-38f, 1e-45f};
  if (rand() % 8 == 0) return special[rand() % 9];
  return ldexpf((float)(rand() - RAND_MAX / 2) / (float)(RAND_MAX / 2), rand() % 60 - 30);
}
static int wrong(const char *what, float ours, float host) {
  bool same = ours == host || (ours != ours && host != host);
  if (!same) printf("%s: %a, the host has %a\\n", what, ours, host);
  return !same;
}
int main() {
  int found = 0;
  for (int n = 0; n < 200000 && found < 5; ++n) {
    volatile float a = any(), b = any(), c = any();
    volatile float sum, difference, product, fused, quotient, root;
    fesetround(MODE);
    sum = a + b; difference = a - b; product = a * b; fused = fmaf(a, b, c); quotient = a / b;
    root = sqrtf(a);
    fesetround(FE_TONEAREST);
    found += wrong("fadd", portFaddWAY(a, b), sum) + wrong("fsub", portFsubWAY(a, b), difference);
    found += wrong("fmul", portFmulWAY(a, b), product);
    found += wrong("fmaf", portFmafWAY(a, b, c), fused);
    found += wrong("fdiv", portFdivWAY(a, b), quotient) + wrong("fsqrt", portFsqrtWAY(a), root);
  }
  return found != 0;
}
"""


@pytest.mark.parametrize(
    ("way", "mode"), [("rd", "FE_DOWNWARD"), ("ru", "FE_UPWARD"), ("rz", "FE_TOWARDZERO")]
)
def test_it_rounds_as_the_host_does(way: str, mode: str, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    names = [f"__{name}_{way}" for name in ("fadd", "fsub", "fmul", "fmaf", "fdiv", "fsqrt")]
    text = "".join(compat.by_hand()[name]["text"] for name in ("port_rounded", *names))
    main = _MAIN.replace("WAY", way.capitalize()).replace("MODE", mode)
    (tmp_path / "a.cpp").write_text(_HEAD + text + main)
    program = str(tmp_path / "a")
    command = [compiler, "-O1", "-frounding-math", "-ffp-contract=off", "-std=c++17"]
    subprocess.run([*command, str(tmp_path / "a.cpp"), "-o", program], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.stdout == ""
