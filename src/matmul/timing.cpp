#include "matmul/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/deadline.hpp"
#include "base/try.hpp"

namespace tutti {
namespace {

double middle_of(std::vector<double> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// A contender, with an event before each of its parts and one after the last.
struct TimedContender {
  MatmulContender* contender = nullptr;
  std::vector<CudaEvent> events;
  std::vector<std::vector<double>> samples;  // of each part
  bool runs() const { return contender->failure.is_ok(); }
};

class ContenderTimer {
 public:
  ContenderTimer(CudaDriver& cuda, const MatmulTiming& timing) : cuda_(cuda), timing_(timing) {}
  // Nothing can be done about a failure here.
  ~ContenderTimer() {
    for (const TimedContender& each : all_) {
      for (CudaEvent const event : each.events) {
        static_cast<void>(cuda_.destroy_event(event).is_ok());
      }
    }
  }
  ContenderTimer(const ContenderTimer&) = delete;
  ContenderTimer& operator=(const ContenderTimer&) = delete;

  Status add(MatmulContender& contender) {
    TimedContender& added = all_.emplace_back(TimedContender{.contender = &contender});
    added.samples.resize(static_cast<std::size_t>(contender.parts));
    for (int k = 0; k <= contender.parts; ++k) {
      TUTTI_ASSIGN(CudaEvent const event, cuda_.create_event(true));
      added.events.push_back(event);
    }
    return Status::ok();
  }

  Status run() {
    for (int round = 0; round < kWarmingRounds; ++round) TUTTI_TRY(run_round());
    for (TimedContender& each : all_) {
      for (auto& samples : each.samples) samples.clear();
    }
    const Deadline enough(kEnoughTiming);
    for (int round = 0; round < kMostTimedRounds; ++round) {
      if (round >= kLeastTimedRounds && enough.passed()) break;
      TUTTI_TRY(run_round());
    }
    for (TimedContender& each : all_) {
      if (!each.runs()) continue;
      for (const auto& samples : each.samples) {
        each.contender->part_us.push_back(middle_of(samples));
      }
    }
    return Status::ok();
  }

 private:
  // The next one has the reverse order.
  Status run_round() {
    for (TimedContender& each : all_) TUTTI_TRY(enqueue(each));
    TUTTI_TRY(wait());
    for (TimedContender& each : all_) {
      for (std::size_t part = 0; each.runs() && part < each.samples.size(); ++part) {
        TUTTI_ASSIGN(const float time, cuda_.elapsed_us(each.events[part], each.events[part + 1]));
        each.samples[part].push_back(static_cast<double>(time));
      }
    }
    std::reverse(all_.begin(), all_.end());
    return Status::ok();
  }

  Status enqueue(TimedContender& each) {
    if (!each.runs()) return Status::ok();
    TUTTI_TRY(cuda_.set_async(timing_.evicting, 0, timing_.evicting_bytes, timing_.stream));
    TUTTI_TRY(cuda_.record_event(each.events.front(), timing_.stream));
    for (int part = 0; part < each.contender->parts; ++part) {
      each.contender->failure = each.contender->run(part);
      if (!each.runs()) return Status::ok();
      const auto after = static_cast<std::size_t>(part) + 1;
      TUTTI_TRY(cuda_.record_event(each.events[after], timing_.stream));
    }
    return Status::ok();
  }

  Status wait() {
    for (const TimedContender& each : all_) {
      if (each.runs()) TUTTI_TRY(wait_for(each.events.back()));
    }
    return Status::ok();
  }

  Status wait_for(CudaEvent event) {
    const Deadline late(timing_.patience);
    while (true) {
      TUTTI_ASSIGN(const bool finished, cuda_.event_finished(event));
      if (finished) return Status::ok();
      if (late.passed()) {
        return {StatusCode::kTimeout,
                fmt::format("tune of a matmul: the stream did not finish within {} ms",
                            timing_.patience.count())};
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  CudaDriver& cuda_;
  const MatmulTiming timing_;
  std::vector<TimedContender> all_;
};

}  // namespace

Status time_contenders(CudaDriver& cuda, const MatmulTiming& timing,
                       std::span<MatmulContender> contenders) {
  ContenderTimer timer(cuda, timing);
  for (MatmulContender& each : contenders) {
    if (each.failure.is_ok()) TUTTI_TRY(timer.add(each));
  }
  return timer.run();
}

}  // namespace tutti
