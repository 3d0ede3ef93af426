#include "bootstrap/identity.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "unit/bootstrap/ranks.hpp"

namespace tutti::testing {
namespace {

TEST(Identity, AFolderIsTheSameByAnyName) {
  const TemporaryDirectory one, other;
  const std::string link = other.path() + "/link";
  std::filesystem::create_directory_symlink(one.path(), link);
  EXPECT_NE(folder_id_of(one.path()), 0u);
  EXPECT_EQ(folder_id_of(one.path()), folder_id_of(one.path() + "/."));
  EXPECT_EQ(folder_id_of(one.path()), folder_id_of(link));
  EXPECT_NE(folder_id_of(one.path()), folder_id_of(other.path()));
  EXPECT_EQ(folder_id_of(one.path() + "/absent"), 0u);
}

TEST(Identity, ProcessesMeetOnOneHostInOneFolder) {
  const PeerIdentity mine = this_process();
  EXPECT_TRUE(all_can_meet({mine, mine}));
  PeerIdentity elsewhere = mine;
  elsewhere.host_id += 1;
  EXPECT_FALSE(all_can_meet({mine, elsewhere, mine}));
  PeerIdentity apart = mine;  // a container with other folders
  apart.folder_id += 1;
  EXPECT_FALSE(all_can_meet({mine, mine, apart}));
  apart.folder_id = 0;  // no folder at all
  EXPECT_FALSE(all_can_meet({apart, apart}));
}

}  // namespace
}  // namespace tutti::testing
