#include "base/result.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using monarch::base::Code;
using monarch::base::Error;
using monarch::base::Result;

namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::kArgument, std::to_string(value) + " is odd"};
  return value / 2;
}

}  // namespace

TEST_CASE("a result is a value or an error") {
  const auto good = half(4);
  CHECK(good.ok());
  CHECK(*good == 2);
  const auto bad = half(3);
  CHECK_FALSE(bad);
  CHECK(bad.error().code == Code::kArgument);
  CHECK(bad.error().message == "3 is odd");
}

TEST_CASE("a result carries what cannot be copied") {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> value = *std::move(result);
  CHECK(*value == 7);
}

TEST_CASE("a result of nothing is still ok or an error") {
  CHECK(Result<void>().ok());
  CHECK(Result<void>(Error{Code::kLimit, "too much"}).error().message == "too much");
}

TEST_CASE("every code has a name of its own") {
  CHECK(monarch::base::name(Code::kSequence) == "sequence");
  CHECK(monarch::base::name(Code::kMalformed) != monarch::base::name(Code::kCorrupt));
}
