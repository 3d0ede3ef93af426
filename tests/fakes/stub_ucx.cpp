// Stands in for libucp.so.0: a development version, or where STUB_IS_OLD a release before 1.9.
namespace {

#ifdef STUB_IS_OLD
constexpr unsigned kMinor = 8;
#else
constexpr unsigned kMinor = 13;
#endif

}  // namespace

extern "C" {

void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  *major = 1;
  *minor = kMinor;
  *release = 1;
}

const char* ucp_get_version_string() { return "1.13.1-rc1"; }

}  // extern "C"
