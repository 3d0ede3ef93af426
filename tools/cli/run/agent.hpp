// The part of `tutti run --hosts` that runs on each host: starts the ranks of this host, and does
// what comes over standard input. When that ends, so do the ranks.
#pragma once

namespace tutti::cli {

int run_agent();

}  // namespace tutti::cli
