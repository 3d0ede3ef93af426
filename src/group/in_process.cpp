#include "group/in_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/guard.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

using MadeRank = Result<std::unique_ptr<CommunicatorImpl>>;

// Before anything is made for so many.
Status check_devices(std::span<const int> devices, Backend backend) {
  constexpr std::size_t kMost = 256;  // threads, each with a page of records
  if (devices.empty()) return {StatusCode::kInvalidArgument, "a group has at least one rank"};
  if (devices.size() > kMost) {
    return {StatusCode::kUnsupported, fmt::format("a process takes up to {} ranks", kMost)};
  }
  for (std::size_t r = 0; r < devices.size(); ++r) {
    if (devices[r] < -1) {
      return {
          StatusCode::kInvalidArgument,
          fmt::format("device {} of rank {}: a GPU's number from 0 on, or -1 for the rank's own",
                      devices[r], r)};
    }
    if (devices[r] >= 0 && backend == Backend::kHost) {
      return {StatusCode::kInvalidArgument,
              fmt::format("device {} of rank {}: the host backend uses no GPU; give -1 for each "
                          "rank, or another backend",
                          devices[r], r)};
    }
  }
  return Status::ok();
}

// Where a thread cannot be had its rank is missed by those that have one: they are told.
std::vector<MadeRank> create_on_threads(std::span<const int> devices,
                                        const CommunicatorOptions& options,
                                        const Drivers& drivers) {
  auto groups = make_in_process_group(static_cast<int>(devices.size()));
  const Status never(StatusCode::kInternal, "not made");
  std::vector<MadeRank> made;
  made.reserve(groups.size());
  for (std::size_t r = 0; r < groups.size(); ++r) made.emplace_back(never);
  std::vector<std::jthread> threads;
  threads.reserve(groups.size());
  for (std::size_t r = 0; r < groups.size(); ++r) {
    const auto create = [&, r] {
      made[r] = guarded([&] {
        CommunicatorOptions mine = options;
        mine.device = devices[r];
        Drivers with = drivers;
        with.local_rank = static_cast<int>(r);
        return CommunicatorImpl::create(std::move(groups[r]), mine, with);
      });
    };
    guarded_by(
        [&] { (void)threads.emplace_back(create); },
        [&](const Status& failure) {
          made[r] = failure;
          groups[r]->announce_failure({static_cast<int>(r), failure.code(), failure.message()});
        });
  }
  threads.clear();  // joins them
  return made;
}

}  // namespace

Result<std::vector<std::unique_ptr<CommunicatorImpl>>> create_in_process(
    std::span<const int> devices, const CommunicatorOptions& options, const Drivers& drivers) {
  TUTTI_TRY(check_devices(devices, options.backend));
  std::vector<std::unique_ptr<CommunicatorImpl>> ranks;
  ranks.reserve(devices.size());
  for (MadeRank& made : create_on_threads(devices, options, drivers)) {
    TUTTI_TRY(made.status());
    ranks.push_back(std::move(made).value());
  }
  return ranks;
}

}  // namespace tutti
