// What the launcher of `tutti run --hosts` and its agents tell each other.
#include "fuzz/fuzz.hpp"
#include "run/wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tutti::fuzz::must_hold;
  const std::string_view input = tutti::fuzz::text_of(data, size);
  const auto to_agent = tutti::cli::decode_to_agent(input);
  must_hold(!to_agent.is_ok() || encode(*to_agent) == input, "what is read is what was written");
  const auto from_agent = tutti::cli::decode_from_agent(input);
  must_hold(!from_agent.is_ok() || encode(*from_agent) == input,
            "what is heard is what was written");
  return 0;
}
