// What the stand-in for libnccl.so.2 was asked, and what it is to answer. The test finds the one
// instance by the symbol stub_nccl_state.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

struct StubNccl {
  std::atomic<int> version{22809};
  std::atomic<int> next_result{0};     // of the next call that can fail
  std::atomic<int> async_error{0};     // what ncclCommGetAsyncError reports
  std::atomic<bool> hold_init{false};  // ncclCommInitRank waits until it is false
  std::atomic<int> inits{0}, aborts{0}, revokes{0}, destroys{0}, operations_open{0};

  int dtype = -1, op = -1, residence = -1, rank = -1, size = -1;
  std::size_t count = 0;
  int root = -1;
  int scatters = 0;  // calls of ncclReduceScatter
  struct Passed {    // to, or from, one rank
    const void* at;
    std::size_t count;
    int peer;
  };
  int groups_open = 0;
  bool fail_sends = false;
  std::vector<Passed> sent, received;
  void* stream = nullptr;
  const void* scalar_at = nullptr;
  std::array<unsigned char, 8> scalar{};  // as many bytes as the element type has are read
  std::array<char, 128> id{};

  int cta_policy = -1;        // of the latest ncclCommInitRankConfig
  int exchanges_at_once = 0;  // calls of ncclAlltoAll
  int gathers_at_once = 0, scatters_at_once = 0;

  bool makes_windows = true;
  int windows_open = 0, window_flags = -1;
  void* window_base = nullptr;
  std::size_t window_bytes = 0;
};
