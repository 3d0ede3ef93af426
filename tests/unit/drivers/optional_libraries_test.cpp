#include "drivers/optional_libraries.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Why a file is not taken; empty where it is.
std::string refusal(const Result<FoundLibrary>& library) {
  if (library.is_ok()) return {};
  EXPECT_EQ(library.status().code(), StatusCode::kUnavailable);
  return library.status().message();
}

TEST(OptionalLibraries, SayVersionAndPath) {
  const auto cublas_lt = look_at_cublas_lt(STUB_CUBLAS_LT);
  ASSERT_TRUE(cublas_lt.is_ok()) << cublas_lt.status().message();
  EXPECT_EQ(cublas_lt->version, "13.0.2");
  EXPECT_EQ(cublas_lt->path, STUB_CUBLAS_LT);
  const auto ucx = look_at_ucx(STUB_UCX);
  ASSERT_TRUE(ucx.is_ok()) << ucx.status().message();
  EXPECT_EQ(ucx->version, "1.13.1-rc1");  // its own words
  EXPECT_EQ(ucx->path, STUB_UCX);
}

TEST(OptionalLibraries, OldOnesAreRefusedWithBothVersions) {
  EXPECT_THAT(refusal(look_at_cublas_lt(STUB_CUBLAS_LT_OLD)),
              AllOf(HasSubstr(STUB_CUBLAS_LT_OLD), HasSubstr("11.11.3"), HasSubstr("12.0.0")));
  EXPECT_THAT(refusal(look_at_ucx(STUB_UCX_OLD)), AllOf(HasSubstr("1.12.1"), HasSubstr("1.13.0")));
}

TEST(OptionalLibraries, FilesThatAreSomethingElseAreRefused) {
  EXPECT_THAT(refusal(look_at_cublas_lt(STUB_UCX)), HasSubstr("has no cublasLtGetVersion"));
  EXPECT_THAT(refusal(look_at_ucx(STUB_CUBLAS_LT)),
              HasSubstr("has no ucp_get_version, ucp_get_version_string"));
}

// The loader would wait for whoever writes to the FIFO.
TEST(OptionalLibraries, WhatIsNoFileIsRefused) {
  const std::string fifo = testing::TempDir() + "tutti_library_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(refusal(look_at_ucx(fifo)), HasSubstr("it is no file"));
  ::unlink(fifo.c_str());
  EXPECT_THAT(refusal(look_at_ucx(testing::TempDir())), HasSubstr("it is no file"));
}

TEST(OptionalLibraries, AbsentOnesAreNamed) {
  EXPECT_THAT(refusal(look_at_cublas_lt("libtutti-no-such.so.1")), HasSubstr("libtutti-no-such"));
  EXPECT_THAT(refusal(look_at_ucx("libtutti-no-such.so.1")), HasSubstr("libtutti-no-such"));
}

// Whether they are here is this machine's affair.
TEST(OptionalLibraries, TheRealOnesAreFoundOrTheirPackageIsNamed) {
  const auto cublas_lt = real_optional_libraries().cublas_lt();
  if (cublas_lt.is_ok()) {
    EXPECT_THAT(cublas_lt->path, HasSubstr("libcublasLt.so"));
  } else {
    EXPECT_THAT(refusal(cublas_lt), AllOf(HasSubstr("libcublasLt.so.13"),
                                          HasSubstr("libcublasLt.so.12"), HasSubstr("has it")));
  }
  const auto ucx = real_optional_libraries().ucx();
  if (ucx.is_ok()) {
    EXPECT_THAT(ucx->path, HasSubstr("libucp.so"));
  } else {
    EXPECT_THAT(refusal(ucx),
                AllOf(HasSubstr("libucp.so.0"), HasSubstr("libucx0"), HasSubstr("has it")));
  }
}

}  // namespace
}  // namespace tutti
