// The kinds of groups there are, so that one test can say what holds for all of them.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "unit/bootstrap/ranks.hpp"

namespace tutti::testing {

enum class GroupKind { kInProcess, kLocal, kTcp };

inline std::string name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::kInProcess:
      return "in_process";
    case GroupKind::kLocal:
      return "local";
    case GroupKind::kTcp:
      return "tcp";
  }
  return "";
}

inline void PrintTo(GroupKind kind, std::ostream* out) { *out << name_of(kind); }

inline GroupId make_id(GroupKind kind) {
  auto id = kind == GroupKind::kTcp ? GroupId::tcp("127.0.0.1", 0) : GroupId::local();
  EXPECT_TRUE(id.is_ok());
  return std::move(id).value();
}

// Makes a group of `size` ranks and calls body on a thread per rank.
inline void with_group(GroupKind kind, int size, const std::function<void(Bootstrap&)>& body) {
  if (kind == GroupKind::kInProcess) {
    auto group = make_in_process_group(size);
    run_threads(size, [&](int rank) {
      body(*group[rank]);
      group[rank].reset();
    });
    return;
  }
  const TemporaryDirectory directory;
  const GroupId id = make_id(kind);
  run_threads(size, [&](int rank) {
    if (auto group = join_or_fail(id, rank, size, options_in(directory))) body(*group);
  });
  EXPECT_TRUE(directory.entries().empty()) << "left behind: " << directory.entries().front();
}

}  // namespace tutti::testing
