#!/usr/bin/env bash
# two_hosts.sh TUTTI: `tutti run --hosts` and `tutti bench --hosts` over sshd, on two hosts that are
# network namespaces of this one. Ends with 77, and a line that says why, where they cannot be made.
set -euo pipefail
tutti=$1
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*"; cat "$folder"/log.* "$folder/out" "$folder/err" 2>/dev/null; exit 1; }

[[ $EUID -eq 0 ]] || skip "only root makes network namespaces"
PATH=$PATH:/usr/sbin:/sbin
for tool in sshd ssh ssh-keygen ip setsid timeout; do
  command -v $tool >/dev/null || skip "there is no $tool (openssh-server, openssh-client, iproute2)"
done
sshd=$(command -v sshd)

folder=$(mktemp -d)
a=tutti_a_$$ b=tutti_b_$$ # namespaces; 10.88.77.1 and .2
daemons=()
clean_up() {
  [[ ${#daemons[@]} -eq 0 ]] || kill "${daemons[@]}" 2>/dev/null || true
  ip netns del $a 2>/dev/null || true
  ip netns del $b 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

ip netns add $a 2>/dev/null || skip "network namespaces are not allowed here"
ip netns add $b
ip -n $a link add e0 type veth peer name e0 netns $b 2>/dev/null || skip "there is no veth here"
for n in 1 2; do
  host=$([[ $n == 1 ]] && echo $a || echo $b)
  ip -n "$host" link set lo up
  ip -n "$host" link set e0 up
  ip -n "$host" addr add 10.88.77.$n/24 dev e0
done

ssh-keygen -q -t ed25519 -N '' -f "$folder/host_key"
ssh-keygen -q -t ed25519 -N '' -f "$folder/key"
cp "$folder/key.pub" "$folder/authorized"
chmod 755 "$folder" && chmod 644 "$folder/authorized"
mkdir -p /run/sshd
for n in 1 2; do
  host=$([[ $n == 1 ]] && echo $a || echo $b)
  ip netns exec "$host" "$sshd" -D -E "$folder/log.$n" -f /dev/null -h "$folder/host_key" \
    -o ListenAddress=10.88.77.$n -o AuthorizedKeysFile="$folder/authorized" -o PidFile=none \
    -o PermitRootLogin=prohibit-password -o StrictModes=no -o UsePAM=no \
    -o ClientAliveInterval=1 -o ClientAliveCountMax=1 &
  daemons+=($!)
done

export TUTTI_SSH="ssh -F none -i $folder/key -o BatchMode=yes -o StrictHostKeyChecking=no \
-o UserKnownHostsFile=/dev/null -o ServerAliveInterval=1 -o ServerAliveCountMax=1"
hosts=10.88.77.1:2,10.88.77.2:2
on_a() { timeout 60 ip netns exec $a "$@" </dev/null >"$folder/out" 2>"$folder/err"; }
code_of() { "$@" && code=0 || code=$?; }

for _ in $(seq 100); do
  on_a $TUTTI_SSH 10.88.77.1 true && on_a $TUTTI_SSH 10.88.77.2 true && reached=1 && break
  grep -q 'account is locked' "$folder"/log.* && skip "root may not log in here"
  sleep 0.05
done
[[ ${reached:-} == 1 ]] || fail "no login"

# The ranks meet over the network between the namespaces, and reduce exactly.
code_of on_a "$tutti" bench all_reduce --hosts $hosts --backend host --bytes 1K -n 3 -w 1
[[ $code == 0 ]] || fail "bench ended with $code"
grep -q 'all_reduce, 4 ranks' "$folder/out" || fail "bench did not have 4 ranks"
grep -q 'Out of bounds values : 0 OK' "$folder/out" || fail "results are wrong"

# Each host runs its ranks in its own namespace.
code_of on_a "$tutti" run --hosts $hosts -- sh -c 'echo "$(ip -4 -o addr show e0 | grep -o 10.88.77.[12]/)"'
[[ $code == 0 ]] || fail "run ended with $code"
[[ $(sort "$folder/out" | tr '\n' ' ') == \
   '[0] 10.88.77.1/ [1] 10.88.77.1/ [2] 10.88.77.2/ [3] 10.88.77.2/ ' ]] || fail "ranks are elsewhere"

# sleepers COUNT: waits until so many run; each has a duration that nobody else's has.
nap=3600.$$
sleepers() {
  local n
  for _ in $(seq 600); do
    n=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -cx $nap || true)
    [[ $n == "$1" ]] && return
    sleep 0.05
  done
  fail "$n sleep, not $1"
}

code_of on_a "$tutti" run --hosts $hosts -- sh -c "[ \$RANK = 3 ] && exit 7; sleep $nap & wait"
[[ $code == 7 ]] || fail "a failure gave $code"
grep -q 'rank 3 on 10.88.77.2 ended with code 7; the other ranks are ended' "$folder/err" ||
  fail "the failure is not told"
sleepers 0

# The launcher is killed: what it has started on both hosts ends.
on_a "$tutti" run --hosts $hosts -- sh -c "sleep $nap & wait" &
job=$!
sleepers 4
for process in /proc/[0-9]*; do
  words=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline" || true)
  [[ $words != "$tutti run --hosts "*" $nap "* ]] || kill -KILL "${process#/proc/}"
done
wait $job || true
sleepers 0

# The network between the hosts is cut: both sides notice by the keep-alive of ssh and sshd.
on_a "$tutti" run --hosts $hosts -- sh -c "sleep $nap & wait" &
job=$!
sleepers 4
ip -n $b link set e0 down
code_of wait $job
[[ $code == 1 ]] || fail "a cut gave $code"
grep -q 'the connection to 10.88.77.2 was lost' "$folder/err" || fail "the cut is not told"
sleepers 0
echo "passed"
