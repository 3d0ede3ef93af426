#include "drivers/ucx_library.hpp"

#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(UcxLibraryTest, WhatCannotBeUsedIsNamedWithWhatToDo) {
  const Status absent = find_ucx("/no/such/libucp.so.0").status();
  EXPECT_EQ(absent.code(), StatusCode::kUnavailable);
  EXPECT_THAT(absent.message(),
              AllOf(HasSubstr("TUTTI_UCX_LIBRARY=/no/such/libucp.so.0"), HasSubstr("unset it")));
  const Status old = find_ucx(STUB_UCX_OLD).status();
  EXPECT_EQ(old.code(), StatusCode::kUnavailable);
  EXPECT_THAT(old.message(), AllOf(HasSubstr("1.12.1"), HasSubstr("1.13.0 or newer")));
  EXPECT_THAT(find_ucx(STUB_CUBLAS_LT).status().message(), HasSubstr("has no ucp_get_version"));
}

TEST(UcxLibraryTest, MoreEnvironmentEndsAndReplacesNothing) {
  ::setenv("TUTTI_TEST_SET", "before", 1);
  ::unsetenv("TUTTI_TEST_MORE");
  {
    constexpr const char* kExtra[] = {"TUTTI_TEST_SET=after", "TUTTI_TEST_MORE=1"};
    const MoreEnvironment more(kExtra);
    EXPECT_STREQ(::getenv("TUTTI_TEST_SET"), "before");
    EXPECT_STREQ(::getenv("TUTTI_TEST_MORE"), "1");
  }
  EXPECT_STREQ(::getenv("TUTTI_TEST_SET"), "before");
  EXPECT_EQ(::getenv("TUTTI_TEST_MORE"), nullptr);
  ::unsetenv("TUTTI_TEST_SET");
}

using Handler = void (*)(int);
Handler handler_of(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler;
}

TEST(UcxLibraryTest, LoadingTouchesNoSignalAndNoEnvironment) {
  const Handler on_fault = handler_of(SIGSEGV), on_hang_up = handler_of(SIGHUP);
  const auto found = find_ucx("");
  if (!found.is_ok()) GTEST_SKIP() << found.status().message();
  EXPECT_EQ(handler_of(SIGSEGV), on_fault);
  EXPECT_EQ(handler_of(SIGHUP), on_hang_up);
  EXPECT_EQ(::getenv("UCX_HANDLE_ERRORS"), nullptr);
  EXPECT_THAT(found->path, HasSubstr("libucp"));
}

}  // namespace
}  // namespace tutti
