#include "tutti/status.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/try.hpp"
#include "tutti/version.hpp"

namespace tutti {
namespace {

TEST(Status, SuccessHasNothingToSay) {
  const Status status = Status::ok();
  EXPECT_TRUE(status.is_ok());
  EXPECT_TRUE(static_cast<bool>(status));
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_TRUE(status.with_context("while testing").is_ok());
}

TEST(Status, FailureCarriesCodeTextAndPlace) {
  const Status status(StatusCode::kTimeout, "rank 3 did not come");
  EXPECT_FALSE(status.is_ok());
  EXPECT_EQ(status.code(), StatusCode::kTimeout);
  EXPECT_EQ(status.to_string(), "timeout: rank 3 did not come");
  EXPECT_NE(std::string(status.where().file_name()).find("status_test.cpp"), std::string::npos);
}

TEST(Status, ContextGoesBeforeTheTextAndKeepsTheRest) {
  const Status inner(StatusCode::kSystem, "no such file");
  const Status outer = inner.with_context("reading table.json");
  EXPECT_EQ(outer.code(), StatusCode::kSystem);
  EXPECT_EQ(outer.message(), "reading table.json: no such file");
  EXPECT_EQ(outer.where().line(), inner.where().line());
}

TEST(Status, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    names.insert(to_string(static_cast<StatusCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(StatusCode::kInternal) + 1);
  EXPECT_EQ(names.count("unknown code"), 0u);
}

TEST(Result, HoldsAValueOrAFailure) {
  const Result<int> good = 7;
  ASSERT_TRUE(good.is_ok());
  EXPECT_EQ(*good, 7);
  const Result<int> bad = Status(StatusCode::kUnsupported, "no");
  ASSERT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.status().code(), StatusCode::kUnsupported);
}

TEST(Result, IsNeverMadeFromSuccessAlone) {
  const Result<int> result = Status::ok();
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().code(), StatusCode::kInternal);
}

Result<int> half_of(int value) {
  if (value % 2 != 0) return Status(StatusCode::kInvalidArgument, "odd");
  return value / 2;
}

Result<std::unique_ptr<int>> quarter_of(int value) {
  TUTTI_ASSIGN(const int half, half_of(value));
  TUTTI_ASSIGN(auto quarter, half_of(half));
  return std::make_unique<int>(quarter);
}

Status check_even(int value) {
  TUTTI_TRY(half_of(value).status());
  return Status::ok();
}

TEST(Try, ReturnsTheFirstFailure) {
  EXPECT_EQ(**quarter_of(8), 2);
  EXPECT_EQ(quarter_of(6).status().message(), "odd");
  EXPECT_TRUE(check_even(2).is_ok());
  EXPECT_EQ(check_even(3).code(), StatusCode::kInvalidArgument);
}

TEST(Version, LibraryAndHeadersAgree) { EXPECT_STREQ(version(), TUTTI_VERSION_STRING); }

}  // namespace
}  // namespace tutti
