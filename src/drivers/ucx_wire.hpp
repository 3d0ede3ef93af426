// A wire over UCX: TCP, RDMA and shared memory, whatever reaches a peer best.
//
// Messages from host memory are sent eagerly: whole, without asking the receiver. Those from memory
// of a GPU are sent by rendezvous: UCX moves the payload once the receiver has placed it. A peer
// whose process ends is lost within a second. One that cannot be reached any more, or that is
// stopped, is not: whoever uses the wire needs a deadline of its own.
//
// UCX listens at a port for each interface, and lets whoever connects there write to this process,
// so close_doors() shuts these ports. It closes nobody else's: what UCX has opened is what there
// is more of after it was started, at the ports that the wire's address names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/wire.hpp"
#include "tutti/status.hpp"

namespace tutti {

class Knobs;

// What post_from_gpu() sends, and `place` names.
enum class GpuMemory : std::uint8_t {
  kNone,
  kCuda,         // if UCX has CUDA here; otherwise the wire does not reach GPUs
  kHostInstead,  // tests': memory of the host stands for the GPU's
};

struct WireOptions {
  std::string library;         // TUTTI_UCX_LIBRARY
  std::string interfaces;      // TUTTI_SOCKET_IFNAME
  bool trust_network = false;  // TUTTI_TRUST_NETWORK
  bool one_host = false;       // of all ranks: the loopback will do, where no interface is named
  std::string transports;      // in UCX's names, "tcp"; empty: all, of GPUs' as `gpus` needs
  GpuMemory gpus = GpuMemory::kNone;
};
WireOptions wire_options(const Knobs& knobs);

// What messages may travel over. At least one of both is not empty.
struct WireNetwork {
  std::vector<std::string> tcp;   // interfaces: "eth0"
  std::vector<std::string> rdma;  // devices and ports: "mlx5_0:1"
  std::string text() const;       // "tcp over eth0, rdma over mlx5_0:1"
};

// Whether there is a UCX, and something to send over: as open_ucx_wire() fails.
Status check_ucx(const WireOptions& options);

// Active RDMA ports where `rdma` (UCX has a module for them), which need no permission; and the
// interfaces that choose_interfaces() takes. Fails as that does, where there is no RDMA.
Result<WireNetwork> choose_network(const WireOptions& options, bool rdma);

// kUnavailable: no UCX, or nothing to send over. kPermission: only public addresses. Settings of
// UCX's own in the environment (UCX_TLS, UCX_NET_DEVICES and so on) have precedence; who sets
// UCX_NET_DEVICES has named an interface.
Result<std::unique_ptr<Wire>> open_ucx_wire(const WireOptions& options);

}  // namespace tutti
