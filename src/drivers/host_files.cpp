#include "drivers/host_files.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text_file.hpp"

namespace tutti {
namespace {

constexpr std::string_view kBlanks = " \t\n";

bool is_version(std::string_view word) {
  const auto digit_or_dot = [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; };
  return std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
         word.find('.') != std::string_view::npos &&
         std::all_of(word.begin(), word.end(), digit_or_dot);
}

}  // namespace

std::string kernel_text(const std::string& path) {
  const auto text = read_text_file(path);
  return text.is_ok() ? text->value_or("") : "";
}

std::string normal_pci_bus_id(std::string_view text) {
  // NVML pads the domain to eight digits, everybody else to four.
  const std::size_t domain = text.find(':') == std::string_view::npos ? 0 : text.find(':');
  std::size_t padding = 0;
  while (domain > padding + 4 && text[padding] == '0') ++padding;
  text.remove_prefix(padding);
  std::string normal(text);
  std::transform(normal.begin(), normal.end(), normal.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return normal;
}

int pci_numa_node(const std::string& normal_bus_id) {
  const std::string text = kernel_text("/sys/bus/pci/devices/" + normal_bus_id + "/numa_node");
  int node = -1;
  std::from_chars(text.data(), text.data() + text.size(), node);
  return node;
}

std::string nvidia_driver_version(std::string_view text) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
  constexpr std::string_view kLabel = "NVRM version:";
  const std::size_t label = text.find(kLabel);
  if (label == std::string_view::npos) return {};
  text = text.substr(label + kLabel.size());
  text = text.substr(0, text.find('\n'));
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = text.find_first_not_of(kBlanks, at)) {
    const std::string_view word = text.substr(at, text.find_first_of(kBlanks, at) - at);
    if (is_version(word)) return std::string(word);
    at += word.size();
  }
  return {};
}

}  // namespace tutti
