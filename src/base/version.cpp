#include "tutti/version.hpp"

namespace tutti {

const char* version() { return TUTTI_VERSION_STRING; }

}  // namespace tutti
