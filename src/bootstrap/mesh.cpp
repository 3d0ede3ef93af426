#include "bootstrap/mesh.hpp"

#include <unistd.h>

namespace tutti {

Mesh::Mesh() : owner_(::getpid()) {}

bool Mesh::lost_in_fork() const { return owner_ != ::getpid(); }

}  // namespace tutti
