#include "base/result.h"

#include <cerrno>
#include <memory>

#include <gtest/gtest.h>

namespace hive {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::invalid_argument, "{} is odd", value);
  return value / 2;
}

Result<std::unique_ptr<int>> quarter(int value) {
  int once = TRY(half(value));
  return std::make_unique<int>(TRY_CONTEXT("second step", half(once)));
}

TEST(ResultTest, TryYieldsTheValue) {
  EXPECT_EQ(**quarter(8), 2);
}

TEST(ResultTest, TryReturnsTheFirstError) {
  EXPECT_EQ(quarter(3).error(), (Error{ErrorCode::invalid_argument, "3 is odd"}));
}

TEST(ResultTest, TryContextNamesTheStep) {
  EXPECT_EQ(quarter(6).error().message, "second step: 3 is odd");
}

TEST(ResultTest, SystemErrorsKeepTheirKind) {
  EXPECT_EQ(system_error(ENOENT, "/x").code, ErrorCode::not_found);
  EXPECT_EQ(system_error(ENOENT, "/x").message, "/x: No such file or directory");
}

}  // namespace
}  // namespace hive
