#include "run/hosts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/try.hpp"
#include "parse.hpp"

namespace tutti::cli {
namespace {

constexpr IntRange kPorts{1, 65535};

bool is_of(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [&](char c) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return plain || others.find(c) != std::string_view::npos;
  });
}

// ssh must not take a name for an option.
bool is_name(std::string_view text) {
  return !text.empty() && !text.starts_with('-') && is_of(text, "-._+");
}

struct Place {
  std::string_view address;
  std::optional<std::string_view> number;  // what comes after the last colon
};

// "a", "a:4", "[::1]", "[::1]:4"
Result<Place> parse_place(std::string_view text, std::string_view whole) {
  const auto refuse = [&](std::string_view why) {
    return wrong(fmt::format("'{}' names no host: {}", whole, why));
  };
  Place place;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return refuse("there is no ']'");
    place.address = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (place.address.empty() || !is_of(place.address, ":.%-_")) {
      return refuse("an IPv6 address comes between the brackets");
    }
    if (!text.empty() && !text.starts_with(':')) return refuse("after ']' comes a colon");
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    place.address = text.substr(0, end);
    text.remove_prefix(end);
    if (text.find(':', 1) != std::string_view::npos) {
      return refuse("an IPv6 address is written in brackets, as in [::1]:2");
    }
    if (place.address.empty()) return refuse("the name is empty");
    if (!is_name(place.address)) return refuse("a name has letters, digits, '-', '.' and '_'");
  }
  if (!text.empty()) place.number = text.substr(1);
  return place;
}

Result<HostRanks> parse_host(std::string_view text) {
  if (text.empty()) return wrong("--hosts has an empty host: a:4,b:4 names two");
  const std::size_t at = text.rfind('@');
  const std::string_view user =
      at == std::string_view::npos ? std::string_view() : text.substr(0, at);
  if (at != std::string_view::npos && !is_name(user)) {
    return wrong(fmt::format("'{}' names no host: '{}' is no user", text, user));
  }
  TUTTI_ASSIGN(const Place place,
               parse_place(at == std::string_view::npos ? text : text.substr(at + 1), text));
  if (place.address.find_first_not_of("0123456789") == std::string_view::npos) {
    return wrong(fmt::format("'{}' names no host, but a number: a:4,b:4 gives two hosts 4 ranks",
                             place.address));
  }
  HostRanks host{.login = at == std::string_view::npos ? std::string(place.address)
                                                       : fmt::format("{}@{}", user, place.address),
                 .address = std::string(place.address)};
  if (place.number) {
    const std::string name = fmt::format("the number of ranks of host '{}'", place.address);
    TUTTI_ASSIGN(host.ranks, parse_int(name, *place.number, {1, kMostRanks}));
  }
  return host;
}

}  // namespace

Result<std::vector<HostRanks>> parse_hosts(std::string_view text) {
  std::vector<HostRanks> hosts;
  for (const std::string_view part : split(text)) {
    TUTTI_ASSIGN(HostRanks host, parse_host(part));
    const bool known = std::ranges::any_of(
        hosts, [&](const HostRanks& other) { return other.address == host.address; });
    if (known) {
      return wrong(fmt::format("--hosts names '{}' twice; give it once, with all of its ranks",
                               host.address));
    }
    hosts.push_back(std::move(host));
  }
  if (count_ranks(hosts) > kMostRanks) {
    return wrong(fmt::format("--hosts gives {} ranks; at most {} are possible", count_ranks(hosts),
                             kMostRanks));
  }
  return hosts;
}

int count_ranks(const std::vector<HostRanks>& hosts) {
  int ranks = 0;
  for (const HostRanks& host : hosts) ranks += host.ranks;
  return ranks;
}

Result<RootAddress> parse_root(std::string_view text) {
  const bool bare_v6 = !text.starts_with('[') && std::ranges::count(text, ':') > 1;
  const std::string bracketed = fmt::format("[{}]", text);
  TUTTI_ASSIGN(const Place place, parse_place(bare_v6 ? bracketed : text, text));
  RootAddress root{.address = std::string(place.address)};
  if (place.number) {
    TUTTI_ASSIGN(root.port, parse_int("the port of rank 0's address", *place.number, kPorts));
  }
  return root;
}

std::string to_text(const RootAddress& root) {
  const bool v6 = root.address.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", root.address, root.port)
            : fmt::format("{}:{}", root.address, root.port);
}

}  // namespace tutti::cli
