// Runs a fuzz target without libFuzzer: its corpus, then mutations of it, the same at each run.
//
//   replay_NAME CORPUS [--expect-finding]
//
// All inputs are tried in a child process. Where one ends it, the parent keeps that input and says
// which it was.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.hpp"

namespace {

constexpr int kMutations = 4000;
constexpr std::size_t kMaxBytes = 64 * 1024;

struct Input {
  std::string name, bytes;
};

// What the child tries at the moment, where the parent can see it.
struct Current {
  std::array<char, 256> name;
  std::size_t size;
  std::array<char, kMaxBytes> bytes;
};

std::vector<Input> read_corpus(const std::filesystem::path& folder) {
  std::vector<Input> inputs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::ifstream file(entry.path(), std::ios::binary);
    Input input{entry.path().filename(), {std::istreambuf_iterator<char>(file), {}}};
    input.bytes.resize(std::min(input.bytes.size(), kMaxBytes));
    inputs.push_back(std::move(input));
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return a.name < b.name; });
  return inputs;
}

// Changes of the kind that parsers must survive.
class Mutator {
 public:
  explicit Mutator(const std::vector<Input>& corpus) : corpus_(corpus) {}

  Input make(int number) {
    random_.seed(static_cast<unsigned>(number));
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(input.bytes);
    input.bytes.resize(std::min(input.bytes.size(), kMaxBytes));
    input.name = "mutation-" + std::to_string(number);
    return input;
  }

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  void change(std::string& bytes) {
    const std::size_t at = below(bytes.size());
    const std::size_t length = below(std::min<std::size_t>(bytes.size() - at, 32) + 1);
    switch (below(6)) {
      case 0:
        if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (!bytes.empty())
          bytes[at] =
              "\x00\x01\x7f\x80\xff"
              "0-9\"{,"[below(11)];
        break;
      case 2:
        bytes.insert(at, length, static_cast<char>(below(256)));
        break;
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      default: {
        const std::string& other = corpus_[below(corpus_.size())].bytes;
        bytes = bytes.substr(0, at) + other.substr(below(other.size()));
      }
    }
  }

  const std::vector<Input>& corpus_;
  std::mt19937 random_;
};

void try_one(const Input& input, Current& current) {
  const std::size_t length = input.name.copy(current.name.data(), current.name.size() - 1);
  current.name[length] = '\0';
  current.size = input.bytes.copy(current.bytes.data(), kMaxBytes);
  // A copy of its own on the heap, so that a sanitizer sees a read beyond its end.
  const std::vector<std::uint8_t> copy(input.bytes.begin(), input.bytes.end());
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

// In the child.
void try_all(const std::vector<Input>& corpus, Current& current) {
  for (const Input& input : corpus) try_one(input, current);
  Mutator mutator(corpus);
  for (int i = 0; i < kMutations; ++i) try_one(mutator.make(i), current);
}

bool find_nothing(const std::vector<Input>& corpus) {
  void* const shared =
      ::mmap(nullptr, sizeof(Current), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return false;
  Current& current = *new (shared) Current();
  const pid_t child = ::fork();
  if (child == 0) {
    try_all(corpus, current);
    ::_exit(0);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  if (status == 0) return true;
  const std::string kept = std::string("finding-") + current.name.data();
  std::ofstream(kept, std::ios::binary)
      .write(current.bytes.data(), static_cast<std::streamsize>(current.size));
  std::printf("found: %s (%zu bytes), kept as %s\n", current.name.data(), current.size,
              std::filesystem::absolute(kept).c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [--expect-finding]\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no inputs\n", argv[1]);
    return 2;
  }
  const bool expect_finding = argc > 2 && std::string_view(argv[2]) == "--expect-finding";
  const bool clean = find_nothing(corpus);
  std::printf("%zu inputs and %d mutations: %s\n", corpus.size(), kMutations,
              clean ? "nothing found" : "something found");
  return clean == expect_finding ? 1 : 0;
}
