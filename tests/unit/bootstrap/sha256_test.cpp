#include "bootstrap/sha256.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Bytes repeated(int byte, std::size_t count) { return Bytes(count, static_cast<std::byte>(byte)); }

TEST(Sha256, GivesTheStandardsVectors) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(view_of(std::string_view("abc")))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(view_of(
                std::string_view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(repeated('a', 1'000'000))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnHowItsInputIsCut) {
  const Bytes text = repeated('x', 200);
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    const ByteView whole = ByteView(text).first(bytes);
    Sha256 hash;
    for (std::size_t i = 0; i < bytes; ++i) hash.add(whole.subspan(i, 1));
    EXPECT_EQ(hex(hash.finish()), hex(sha256(whole))) << bytes;
  }
}

// RFC 4231.
TEST(HmacSha256, GivesTheStandardsVectors) {
  EXPECT_EQ(hex(hmac_sha256(repeated(0x0b, 20), view_of(std::string_view("Hi There")))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256(view_of(std::string_view("Jefe")),
                            view_of(std::string_view("what do ya want for nothing?")))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(repeated(0xaa, 20), repeated(0xdd, 50))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(
      hex(hmac_sha256(
          repeated(0xaa, 131),
          view_of(std::string_view("Test Using Larger Than Block-Size Key - Hash Key First")))),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(HmacSha256, ComparesWholeDigests) {
  const Digest digest = sha256({});
  EXPECT_TRUE(equal_in_constant_time(digest, digest));
  for (std::size_t i = 0; i < digest.size(); ++i) {
    Digest other = digest;
    other[i] ^= std::byte{1};
    EXPECT_FALSE(equal_in_constant_time(digest, other)) << i;
  }
}

}  // namespace
}  // namespace tutti
