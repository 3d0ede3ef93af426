#include "commit.hpp"

#include "tutti_commit.hpp"  // generated, cmake/tutti_commit.cmake

namespace tutti::cli {

std::string commit() { return TUTTI_COMMIT; }

}  // namespace tutti::cli
