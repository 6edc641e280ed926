#include "monarch/native/error.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace monarch::native;

TEST_CASE("a result holds a value or an error") {
  const Result<int> good = 3;
  const Result<int> bad = Error{ErrorCode::out_of_memory, "none left", "allocating"};
  REQUIRE(good);
  CHECK(good.value() == 3);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().message == "none left");
  CHECK(Status{});
  CHECK_FALSE(Status{bad.error()});
}

TEST_CASE("a value that can only be moved is moved out") {
  Result<std::unique_ptr<int>> held = std::make_unique<int>(4);
  const std::unique_ptr<int> taken = std::move(held).value();
  CHECK(*taken == 4);
}

TEST_CASE("every code has a name of its own") {
  CHECK(std::string(error_code_name(ErrorCode::peer_failed)) == "peer_failed");
  CHECK(std::string(error_code_name(ErrorCode::library_missing)) == "library_missing");
}
