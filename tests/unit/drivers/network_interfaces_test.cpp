#include "drivers/network_interfaces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

NetworkInterface interface_of(std::string name, const std::vector<const char*>& hosts) {
  NetworkInterface made{std::move(name), {}, false};
  for (const char* host : hosts) made.addresses.push_back(*SocketAddress::tcp(host, 0));
  made.loopback = made.name == "lo";
  return made;
}

const std::vector<NetworkInterface> kPlain = {
    interface_of("lo", {"127.0.0.1", "::1"}), interface_of("docker0", {"172.17.0.1"}),
    interface_of("eth0", {"10.1.2.3", "fe80::1"}), interface_of("eth1", {"192.168.0.1"})};

TEST(NetworkInterfaces, PrivateAddressesAreTold) {
  for (const char* host : {"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255",
                           "192.168.0.0", "192.168.255.255", "127.0.0.1", "169.254.1.1",
                           "fc00::", "fdff::1", "fe80::", "febf::1", "::1", "::ffff:10.0.0.1"}) {
    EXPECT_TRUE(is_private_address(*SocketAddress::tcp(host, 0))) << host;
  }
  for (const char* host :
       {"9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255",
        "192.169.0.0", "126.0.0.1", "128.0.0.1", "169.253.1.1", "169.255.1.1", "8.8.8.8", "0.0.0.0",
        "fbff::1", "fe00::1", "fec0::1", "2001:db8::1", "::2", "::", "::ffff:8.8.8.8"}) {
    EXPECT_FALSE(is_private_address(*SocketAddress::tcp(host, 0))) << host;
  }
  EXPECT_FALSE(is_private_address(*SocketAddress::unix_path("/tmp/10.0.0.1")));
}

TEST(NetworkInterfaces, NamesAreReadAsNcclReadsThem) {
  for (const char* names : {"eth", "eth0", "ib,eth", "=eth0", "=ib0,eth0", "^ib", "^=eth", "^=ib0"})
    EXPECT_TRUE(names_interface(names, "eth0")) << names;
  for (const char* names : {"ib", "eth00", "=eth", "=eth1,eth00", "^eth", "^ib,eth", "^=eth0", ","})
    EXPECT_FALSE(names_interface(names, "eth0")) << names;
}

TEST(NetworkInterfaces, WithoutNamesThoseThatLeadToOtherHostsAreChosen) {
  EXPECT_THAT(*choose_interfaces(kPlain, "", false), ElementsAre("eth0", "eth1"));
  const std::span<const NetworkInterface> inside(kPlain.data(), 2);
  EXPECT_THAT(*choose_interfaces(inside, "", false), ElementsAre("lo"));
  EXPECT_EQ(choose_interfaces({}, "", false).status().code(), StatusCode::kUnavailable);
}

TEST(NetworkInterfaces, NamedOnesAreTakenAsTheyAre) {
  EXPECT_THAT(*choose_interfaces(kPlain, "=docker0,lo", false), ElementsAre("lo", "docker0"));
  const std::vector<NetworkInterface> open = {interface_of("eth0", {"8.8.8.8"})};
  EXPECT_THAT(*choose_interfaces(open, "eth0", false), ElementsAre("eth0"));
  const Status none = choose_interfaces(kPlain, "ib0", false).status();
  EXPECT_EQ(none.code(), StatusCode::kUnavailable);
  EXPECT_THAT(none.message(), AllOf(HasSubstr("TUTTI_SOCKET_IFNAME=ib0"), HasSubstr("eth0, eth1")));
}

TEST(NetworkInterfaces, PublicAddressesNeedTrust) {
  for (const char* host : {"8.8.8.8", "2001:db8::1"}) {
    std::vector<NetworkInterface> present = kPlain;
    present.back().addresses.push_back(*SocketAddress::tcp(host, 0));
    const Status refused = choose_interfaces(present, "", false).status();
    EXPECT_EQ(refused.code(), StatusCode::kPermission);
    EXPECT_THAT(refused.message(),
                AllOf(HasSubstr("eth1"), HasSubstr(host), HasSubstr("TUTTI_SOCKET_IFNAME"),
                      HasSubstr("TUTTI_TRUST_NETWORK=1")));
    EXPECT_THAT(*choose_interfaces(present, "", true), ElementsAre("eth0", "eth1"));
  }
}

TEST(NetworkInterfaces, TheLoopbackOfThisMachineIsFound) {
  const auto present = list_network_interfaces();
  ASSERT_TRUE(present.is_ok()) << present.status().to_string();
  bool found = false;
  for (const NetworkInterface& one : *present) {
    for (const SocketAddress& address : one.addresses)
      found = found || (one.loopback && address.host() == "127.0.0.1");
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tutti
