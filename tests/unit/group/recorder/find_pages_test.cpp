// Pages are found wherever their process is, and tell what has become of it.
#include "group/recorder/find_pages.hpp"

#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/deadline.hpp"
#include "bootstrap/identity.hpp"
#include "support/children.hpp"
#include "support/patience.hpp"
#include "unit/group/recorder/pages.hpp"

namespace tutti::test {
namespace {

using ::testing::HasSubstr;

// This test's own: others run at the same time.
std::vector<FoundPage> own_pages(std::uint64_t group) {
  std::vector<FoundPage> own;
  for (FoundPage& found : pages_of_processes().pages) {
    if (found.page.group == group) own.push_back(std::move(found));
  }
  return own;
}

// A child with one page of this group and one operation under way.
ChildFunction busy_child(std::uint64_t group, const std::string& folder = {}) {
  return [=](int, Wire& parent) {
    const auto recorder = take(FlightRecorder::open(
        {.group = group, .rank = 2, .ranks = 3, .host_id = this_process().host_id}, folder));
    run_operation(*recorder, 41);
    recorder->begin(note_of(42));
    parent.say("ready");
    ::pause();
  };
}

WriterState wait_for_state(std::uint64_t group, WriterState wanted) {
  WriterState seen = WriterState::kUnknown;
  for (const Deadline end(kPatience); !end.passed() && seen != wanted;) {
    const auto pages = own_pages(group);
    seen = pages.size() == 1 ? pages[0].writer : WriterState::kUnknown;
    if (seen != wanted) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return seen;
}

TEST(FindPages, OfAnotherProcessWithoutStoppingIt) {
  constexpr std::uint64_t kOwn = 0x1001;
  Children children(1, busy_child(kOwn));
  ASSERT_TRUE(children.wait_for_line(0, "ready", kPatience));
  const auto pages = own_pages(kOwn);
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].writer, WriterState::kRunning);
  EXPECT_EQ(pages[0].page.process_id, children.all()[0].pid);
  EXPECT_EQ(pages[0].page.current()->sequence, 42u);
}

TEST(FindPages, SeesThatAProcessIsStopped) {
  constexpr std::uint64_t kOwn = 0x1002;
  Children children(1, busy_child(kOwn));
  ASSERT_TRUE(children.wait_for_line(0, "ready", kPatience));
  children.signal(0, SIGSTOP);
  EXPECT_EQ(wait_for_state(kOwn, WriterState::kStopped), WriterState::kStopped);
  children.signal(0, SIGCONT);
  EXPECT_EQ(wait_for_state(kOwn, WriterState::kRunning), WriterState::kRunning);
}

TEST(FindPages, NothingIsLeftOfAProcessThatWasKilled) {
  constexpr std::uint64_t kOwn = 0x1003;
  Children children(1, busy_child(kOwn));
  ASSERT_TRUE(children.wait_for_line(0, "ready", kPatience));
  ASSERT_EQ(own_pages(kOwn).size(), 1u);
  children.signal(0, SIGKILL);
  children.finish(kPatience);
  EXPECT_EQ(own_pages(kOwn).size(), 0u);
}

TEST(FindPages, TheLastWordsOfAKilledProcessStayInAFolder) {
  constexpr std::uint64_t kOwn = 0x1004;
  const TraceFolder folder;
  Children children(1, busy_child(kOwn, folder.path()));
  ASSERT_TRUE(children.wait_for_line(0, "ready", kPatience));
  EXPECT_EQ(own_pages(kOwn).size(), 1u);  // while it lives it is found like any other
  children.signal(0, SIGKILL);
  children.finish(kPatience);
  const auto found = take(pages_in_folder(folder.path(), this_process().host_id));
  ASSERT_EQ(found.pages.size(), 1u);
  EXPECT_EQ(found.pages[0].writer, WriterState::kEnded);
  EXPECT_EQ(found.pages[0].page.current()->sequence, 42u);
  EXPECT_FALSE(found.pages[0].page.closed);
  // From another host nobody knows.
  EXPECT_EQ(take(pages_in_folder(folder.path(), 1)).pages[0].writer, WriterState::kUnknown);
}

TEST(FindPages, AForkedChildNeitherDoublesNorEndsAPage) {
  constexpr std::uint64_t kOwn = 0x1005;
  const TraceFolder folder;
  auto recorder = take(FlightRecorder::open({.group = kOwn, .rank = 0, .ranks = 1}, folder.path()));
  Children children(1, [&](int, Wire& parent) {
    parent.say("ready");
    recorder.reset();  // as an exit handler might
    ::pause();
  });
  ASSERT_TRUE(children.wait_for_line(0, "ready", kPatience));
  const auto pages = own_pages(kOwn);
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].page.process_id, ::getpid());
  children.signal(0, SIGKILL);
  children.finish(kPatience);
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_FALSE(look_at(*recorder).closed);
}

TEST(FindPages, GarbageInAFolderIsRefusedByName) {
  const TraceFolder folder;
  const auto good = open_recorder(0, folder.path());
  std::ofstream(folder.path() + "/tutti-recorder-short.page") << "x";
  std::ofstream(folder.path() + "/tutti-recorder-zero.page") << std::string(kPageBytes, '\0');
  std::ofstream(folder.path() + "/unrelated") << "x";
  std::filesystem::create_directory(folder.path() + "/tutti-recorder-folder");
  const auto found = take(pages_in_folder(folder.path(), kHost));
  EXPECT_EQ(found.pages.size(), 1u);
  ASSERT_EQ(found.refused.size(), 3u);
  for (const std::string& refused : found.refused) EXPECT_THAT(refused, HasSubstr(folder.path()));
  EXPECT_EQ(pages_in_folder(folder.path() + "/none", kHost).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tutti::test
