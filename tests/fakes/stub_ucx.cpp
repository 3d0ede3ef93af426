// Stands in for libucp.so.0: a development version, or where STUB_IS_OLD a release before 1.13. The
// rest is there and does nothing.
namespace {

#ifdef STUB_IS_OLD
constexpr unsigned kMinor = 12;
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

void ucp_config_read() {}
void ucp_config_modify() {}
void ucp_config_release() {}
void ucp_init_version() {}
void ucp_cleanup() {}
void ucp_context_query() {}
void ucp_worker_create() {}
void ucp_worker_destroy() {}
void ucp_worker_get_address() {}
void ucp_worker_release_address() {}
void ucp_worker_progress() {}
void ucp_worker_get_efd() {}
void ucp_worker_arm() {}
void ucp_worker_set_am_recv_handler() {}
void ucp_ep_create() {}
void ucp_ep_close_nbx() {}
void ucp_am_send_nbx() {}
void ucp_am_recv_data_nbx() {}
void ucp_request_check_status() {}
void ucp_request_free() {}

}  // extern "C"
