#include "base/units.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tutti {
namespace {

TEST(Bytes, Parse) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("1000"), 1000u);
  EXPECT_EQ(*parse_bytes("1K"), KiB);
  EXPECT_EQ(*parse_bytes("64k"), 64 * KiB);
  EXPECT_EQ(*parse_bytes("64KB"), 64 * KiB);
  EXPECT_EQ(*parse_bytes("64KiB"), 64 * KiB);
  EXPECT_EQ(*parse_bytes("4 MiB"), 4 * MiB);
  EXPECT_EQ(*parse_bytes(" 2G "), 2 * GiB);
  EXPECT_EQ(*parse_bytes("1.5M"), 1536 * KiB);
  EXPECT_EQ(*parse_bytes("12B"), 12u);
  EXPECT_EQ(*parse_bytes("18446744073709551615"), SIZE_MAX);
  EXPECT_EQ(*parse_bytes("16777215T"), 16777215ull * 1024 * GiB);
}

TEST(Bytes, WhatIsNotASizeIsRefusedByName) {
  for (const char* text : {"", " ", "-1", "K", "1Q", "1KBB", "1 2", "1e3", "0x10", "1.5", "1.5.5K",
                           "1,5K", "1KiBs", ".", "inf", "nan", "+1"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(parsed.status().message().find("'" + std::string(text) + "'"), std::string::npos);
  }
}

TEST(Bytes, WhatDoesNotFitIsRefused) {
  for (const char* text : {"18446744073709551616", "16777216T", "99999999999999999999999K",
                           "18014398509481984K", "16777216.0T"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_NE(parsed.status().message().find("64 bits"), std::string::npos);
  }
}

TEST(Bytes, FormatIsExactAndParseable) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1000), "1000");
  EXPECT_EQ(format_bytes(KiB), "1K");
  EXPECT_EQ(format_bytes(1536 * KiB), "1536K");
  EXPECT_EQ(format_bytes(256 * MiB), "256M");
  EXPECT_EQ(format_bytes(KiB + 1), "1025");
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) {
    const std::size_t bytes = random() >> (random() % 64) << (random() % 30);
    EXPECT_EQ(*parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(Rounding, Up) {
  EXPECT_EQ(ceil_div(0, 16), 0u);
  EXPECT_EQ(ceil_div(17, 16), 2u);
  EXPECT_EQ(round_up(17, 16), 32u);
  EXPECT_EQ(round_up(32, 16), 32u);
}

}  // namespace
}  // namespace tutti
