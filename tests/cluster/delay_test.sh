#!/usr/bin/env bash
# delay_test.sh TUTTI DELAY_SWITCH: a cluster with a rate and a delay, made of namespaces of this
# machine: how long small and large messages take, what the interfaces carry, a cut link, and that
# nothing is left. Ends with 77, and a line that says why, where it cannot be made.
set -euo pipefail
tutti=$1
export DELAY_SWITCH=$2
cluster=$(realpath "$(dirname "$0")/../../tools/cluster/cluster")
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; cat "$folder/out" 2>/dev/null; exit 1; }

[[ $EUID -eq 0 ]] || skip "only root makes network namespaces"
PATH=$PATH:/usr/sbin:/sbin
for tool in ip tc unshare timeout python3; do
  command -v $tool >/dev/null || skip "there is no $tool (iproute2, util-linux, python3)"
done
[[ -e /dev/net/tun ]] || skip "there is no /dev/net/tun"
folder=$(mktemp -d)
name=t$(($$ % 1000000))
clean_up() {
  "$cluster" down "$name" >/dev/null 2>&1 || true
  rm -rf "$folder"
}
trap clean_up EXIT
ip netns add "$name" 2>/dev/null || skip "network namespaces are not allowed here"
ip netns del "$name"

"$cluster" up "$name" 2 --rate 200mbit --delay 2ms --subnet 10.88.78 >"$folder/out" 2>&1 ||
  skip "no cluster here: $(tail -n 1 "$folder/out")"
echo "drops $("$cluster" drops "$name")" >"$folder/before"
read -r sent_before _ < <("$cluster" bytes "$name" 0)
TUTTI_SOCKET_IFNAME=e0 timeout 60 "$tutti" bench all_reduce --backend host --buffers plain \
  --hosts 10.88.78.1,10.88.78.2 --ssh "$cluster ssh $name" --bytes 1K,512K -n 4 -w 1 \
  --algorithms network_one_shot,network_direct,network_ring --output "$folder/a.json" \
  >"$folder/out" 2>&1 || {
  ! grep -q 'has no UCX\|no UCX' "$folder/out" || skip "there is no UCX"
  fail "bench ended with $?"
}
read -r sent_after _ < <("$cluster" bytes "$name" 0)
python3 - "$folder/a.json" $((sent_after - sent_before)) <<'END' || fail "see above"
import json, sys
rows = {(row["algorithm"], row["bytes"]): row for row in json.load(open(sys.argv[1]))["rows"]}
def check(what, value, least, most):
    print(f"{what}: {value:.0f}, from {least:.0f} to {most:.0f}")
    return least <= value <= most
seconds = 512 * 1024 * 8 / 200e6  # that a host's half goes out, and the other's comes in
good = [row["wrong"] == 0 for row in rows.values()]
# Busy machines are slower; none is faster than the delay, or the rate but for a burst of 64 KB.
for algorithm, hops in (("network_one_shot", 1), ("network_direct", 2), ("network_ring", 2)):
    small, large = rows[algorithm, 1024], rows[algorithm, 512 * 1024]
    least = hops * 2000
    good.append(check(f"1K, {algorithm}, us", small["time_us"]["min"], least, least + 10000))
    time = large["time_us"]["min"]
    good.append(check(f"512K, {algorithm}, us", time, seconds * 0.85e6, seconds * 4e6))
    sent = large["sent_bytes"]
    good.append(check(f"512K, {algorithm}, bytes", sent, 512 * 1024, 512 * 1024 * 1.15))
whole = 15 * 512 * 1024  # five samples of each
good.append(check("bytes of the interface", int(sys.argv[2]), whole, whole * 1.5))
sys.exit(0 if all(good) else 1)
END
[[ drops\ $("$cluster" drops "$name") == "$(cat "$folder/before")" ]] || fail "frames were dropped"

# reaches: whether host 0 gets a connection to host 1, or is told that nobody listens there.
reaches() {
  local said
  said=$("$cluster" exec "$name" 0 -- timeout 2 bash -c 'exec 3<>/dev/tcp/10.88.78.2/9' 2>&1 || true)
  [[ $said == *refused* ]]
}
reaches || fail "host 1 is not reached"
"$cluster" cut "$name" 1
! reaches || fail "a cut link still works"
"$cluster" restore "$name" 1
for _ in 1 2 3; do reaches && restored=1 && break; done
[[ ${restored:-} == 1 ]] || fail "a restored link does not work"

"$cluster" down "$name" >"$folder/out"
grep -q 'frames [0-9]* dropped 0 ' "$folder/out" || fail "the switch counted drops"
[[ -z $(ip netns list | grep "^$name-") ]] || fail "namespaces are left"
[[ -z $(ls /run/tutti_cluster | grep "^$name\.") ]] || fail "files are left"
echo "passed"
