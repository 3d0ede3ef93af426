// How a message goes through programs of copy engines: in one pass, or where peers cannot address
// the buffers, in as many as staging takes. Large passes may be cut into chunks, so that kernels
// reduce one while the next is copied.
#pragma once

#include <algorithm>

#include "base/units.hpp"
#include "device/copy_engine/stages.hpp"

namespace tutti {

// So many elements cut into equal parts, but for the last one.
struct EngineChunks {
  static constexpr std::size_t kMost = 8;  // each costs a few microseconds
  std::size_t count = 0, chunk = 0, number = 0;

  std::size_t first(std::size_t k) const { return k * chunk; }
  std::size_t length(std::size_t k) const { return std::min(chunk, count - k * chunk); }
};

// One pass over the message. Places are elements of the message.
class EnginePass {
 public:
  EnginePass(Stages& stages, const KernelArgs& work, std::size_t element_bytes, Range all)
      : stages_(stages), work_(work), element_bytes_(element_bytes), all_(all) {}

  const Range& all() const { return all_; }
  bool is_staged() const { return work_.stage_input; }
  std::size_t unit() const { return 16 / element_bytes_; }

  // Through staging there is one: a pass is short enough.
  EngineChunks chunks_of(std::size_t count) const {
    const std::size_t least = ceil_div(count, EngineChunks::kMost);
    const std::size_t wanted = is_staged() || work_.chunk_bytes == 0
                                   ? count
                                   : std::max(work_.chunk_bytes / element_bytes_, least);
    const std::size_t chunk = round_up(wanted, unit());
    return {count, chunk, chunk == 0 ? 0 : ceil_div(count, chunk)};
  }

  std::byte* output(std::size_t at) const { return work_.output + at * element_bytes_; }
  // Where rank `rank` shows its input to others.
  std::byte* input_of(int rank, std::size_t at) const {
    return is_staged() ? staged(work_.staging.at[rank], at)
                       : work_.inputs.at[rank] + at * element_bytes_;
  }
  // Likewise what it has reduced.
  std::byte* sums_of(int rank, std::size_t at) const {
    const int step = (rank - work_.rank + work_.ranks - 1) % work_.ranks;
    std::byte* const sums = work_.outputs.at[step];
    return work_.stage_output ? staged(sums, at) : sums + at * element_bytes_;
  }

  void copy(std::byte* to, const std::byte* from, std::size_t count) const {
    stages_.copy(to, from, count * element_bytes_);
  }
  // What this rank has itself, while what others have is under way.
  void copy_own(std::byte* to, const std::byte* from, std::size_t count) const {
    if (from != to) stages_.copy_among_kernels(to, from, count * element_bytes_);  // else in place
  }
  // This pass's part of everybody's input, each to its place in pieces of so many elements.
  void fetch_pieces(std::size_t piece) const {
    const auto place = [&](int rank) {
      return output(static_cast<std::size_t>(rank) * piece + all_.first);
    };
    for_each_other([&](int rank) { copy(place(rank), input_of(rank, all_.first), all_.count); });
    copy_own(place(work_.rank), work_.input + all_.first * element_bytes_, all_.count);
  }
  // To the same place of everybody's outputs, or of staging where those are staged: by the switch,
  // or one by one, the next rank's first.
  void copy_to_all(std::size_t place, const std::byte* from, std::size_t count) const {
    const std::size_t at = place * element_bytes_;
    if (work_.multicast.output != nullptr) return copy(work_.multicast.output + at, from, count);
    for (int step = 0; step < work_.ranks; ++step) {
      std::byte* const to = work_.outputs.at[step] + at;
      if (from != to) copy(to, from, count);  // else it is in place
    }
  }
  // Every rank's input is there. Where others do not see the own one as it is, show_all() calls
  // show() for each part that they fetch at once; before it, they have read what was shown last.
  template <class ShowAll>
  void begin(ShowAll&& show_all) const {
    if (is_staged()) {
      stages_.copies_wait(stages_.kernels());
      show_all();
      stages_.kernels_wait(stages_.copies());
    }
    meet(first_publish(work_));
  }
  void show(Range some) const {
    copy(input_of(work_.rank, some.first), work_.input + some.first * element_bytes_, some.count);
  }

  // Nobody reads here any more.
  void end() const { meet_behind_copies(Publish::kLoads); }

  // What was copied so far is there, or was read.
  void meet_behind_copies(Publish publish) const {
    stages_.kernels_wait(stages_.copies());
    meet(publish);
  }

  void meet(Publish publish) const {
    KernelArgs nothing = part(work_.output, 0);
    nothing.meets = true;
    stages_.reduce(nothing, publish);
  }

  // f(rank), the next rank first: nobody is read by everyone at once.
  template <class F>
  void for_each_other(F&& f) const {
    for (int step = 1; step < work_.ranks; ++step) f((work_.rank + step) % work_.ranks);
  }

  // A kernel that reduces so many elements, once its inputs are set.
  KernelArgs part(std::byte* to, std::size_t count) const {
    KernelArgs part = work_;
    part.count = count;
    part.input = part.output = to;
    part.stage_input = part.stage_output = false;
    part.meets = false;
    return part;
  }

 private:
  std::byte* staged(std::byte* staging, std::size_t at) const {
    return staging + (at - all_.first) * element_bytes_;
  }

  Stages& stages_;
  const KernelArgs& work_;
  std::size_t element_bytes_;
  Range all_;
};

// f(pass) for each one.
template <class F>
void for_each_pass(Stages& stages, const KernelArgs& work, std::size_t element_bytes, F&& f) {
  const std::size_t length = chunk_elements(work, element_bytes);
  for (std::size_t done = 0; done < work.count || done == 0; done += length) {
    f(EnginePass(stages, work, element_bytes, {done, std::min(length, work.count - done)}));
    if (length == 0) break;
  }
}

}  // namespace tutti
