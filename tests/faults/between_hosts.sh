#!/usr/bin/env bash
# between_hosts.sh CLUSTER RANK: what two ranks on two hosts say if the link between them is cut, if
# one of them is stopped or killed, and if one host lacks what it needs. CLUSTER is
# tools/cluster/cluster, whose hosts are network namespaces; RANK is tutti_rank_between_hosts. Ends
# with 77, and a line that says why, where there can be no such hosts.
set -euo pipefail
cluster=$1 rank=$2
skip() { echo "skipped: $*"; exit 77; }
fail() {
  echo "FAILED: $*"
  grep . "$folder"/*.out "$folder"/*.err || true
  exit 1
}

[[ $EUID -eq 0 ]] || skip "only root makes network namespaces"
PATH=$PATH:/usr/sbin:/sbin
for tool in ip unshare timeout python3; do
  command -v $tool >/dev/null || skip "there is no $tool (iproute2, util-linux)"
done
# ldconfig names it if it is installed; the name of the file follows the links.
ucx=$(readlink -f "$(ldconfig -p | sed -n 's/.* => \(.*libucp\.so\.0\)$/\1/p' | head -1)" || true)
[[ -n $ucx ]] || skip "there is no UCX (libucx0)"

folder=$(mktemp -d)
name=f$(($$ % 1000000)) subnet=10.89.$(($$ % 250))
clean_up() {
  "$cluster" down "$name" || true
  rm -rf "$folder"
}
trap clean_up EXIT
"$cluster" up "$name" 2 --subnet "$subnet" 2>"$folder/up.err" ||
  skip "network namespaces are not allowed here: $(tail -1 "$folder/up.err")"

timeout_ms=2000 limit=3 # seconds: the timeout and one more
random_hex() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }
random_hex >"$folder/secret"
chmod 600 "$folder/secret"

# start JOB PORT NUMBER COMMAND...: rank NUMBER of a job, on the host of that number.
declare -A pid
start() {
  local job=$1 port=$2 number=$3
  shift 3
  timeout 60 "$cluster" exec "$name" "$number" -- env \
    TUTTI_RANK="$number" TUTTI_SIZE=2 TUTTI_LOCAL_RANK=0 TUTTI_LOCAL_SIZE=1 \
    TUTTI_ROOT="$subnet.1:$port" TUTTI_SECRET_FILE="$folder/secret" \
    TUTTI_TIMEOUT_MS=$timeout_ms TUTTI_SOCKET_IFNAME=e0 TUTTI_DEBUG=OFF \
    "$@" >"$folder/$job.$number.out" 2>"$folder/$job.$number.err" &
  pid[$job.$number]=$!
}
said() { cat "$folder/$1.out"; }
wait_until_ready() {
  local number
  for number in 0 1; do
    for _ in $(seq 1000); do
      ! grep -q '^ready' "$folder/$1.$number.out" || continue 2
      sleep 0.01
    done
    fail "rank $number of '$1' is not ready"
  done
}
# signal SIGNAL JOB.NUMBER: to the rank, which is a child of `timeout`.
signal() { kill "-$1" "$(cat "/proc/${pid[$2]}/task/${pid[$2]}/children")"; }
code_of() { wait "${pid[$1]}" && code=0 || code=$?; }
# expect_failure JOB.NUMBER SECONDS TEXT...: it has failed, in so many seconds at most, and it and no
# library below it says why: in one line that holds each TEXT.
expect_failure() {
  local who=$1 seconds=$2 text
  shift 2
  code_of "$who"
  [[ $code == 1 ]] || fail "$who ended with $code"
  for text in "$@"; do
    grep -q "^failed in .*$text" "$folder/$who.out" || fail "$who does not say '$text'"
  done
  ! grep -qv '^ready\|^failed in ' "$folder/$who.out" "$folder/$who.err" ||
    fail "$who, or what it uses, says more"
  sed -n 's/^failed in \([0-9.]*\) s.*/\1/p' "$folder/$who.out" |
    awk -v most="$seconds" '{ exit !($1 <= most) }' || fail "$who took longer than $seconds s"
}

# The link is back before the timeout.
start restored 4501 0 "$rank" 2.5
start restored 4501 1 "$rank" 2.5
wait_until_ready restored
"$cluster" cut "$name" 1
sleep 0.6
"$cluster" restore "$name" 1
for number in 0 1; do
  code_of restored.$number
  [[ $code == 0 ]] || fail "a link that was cut for a moment gave $code"
  grep -qx '0 wrong values' "$folder/restored.$number.out" || fail "results are wrong"
done

# listens_at PORT: whether somebody on the first host does.
listens_at() {
  "$cluster" exec "$name" 0 -- grep -qi "$(printf ':%04X 00000000:0000 0A' "$1")" /proc/net/tcp
}

# A process is killed; in another job, one is stopped; a third job misses one; a fourth finds its
# port taken; in a fifth, a host has no UCX.
for job in killed stopped; do
  port=$([[ $job == killed ]] && echo 4502 || echo 4503)
  start $job $port 0 "$rank" 50
  start $job $port 1 "$rank" 50
done
start missing 4504 0 "$rank"
"$cluster" exec "$name" 0 -- python3 -c '
import socket, sys, time
listener = socket.create_server((sys.argv[1], 4507))
time.sleep(30)' "$subnet.1" &
disown
start no_ucx 4505 0 "$rank"
start no_ucx 4505 1 unshare --mount sh -c 'mount --bind /dev/null "$1" && exec "$2"' - "$ucx" "$rank"
for _ in $(seq 1000); do
  ! listens_at 4507 || break
  sleep 0.01
done
start taken 4507 0 "$rank"
wait_until_ready killed
wait_until_ready stopped
disown "${pid[killed.1]}" # bash need not tell of it
signal KILL killed.1
signal STOP stopped.1
expect_failure killed.0 1.5 "peer failed" "rank 1 (host $name-1)"
expect_failure stopped.0 $limit timeout "all_reduce/network" "rank 1 (host $name-1) gave no sign"
signal CONT stopped.1
expect_failure stopped.1 60 "rank"
expect_failure missing.0 $limit timeout "rank 1"
expect_failure taken.0 $limit "4507.*choose another port"
for number in 0 1; do
  expect_failure no_ucx.$number $limit "rank 1 (host $name-1): no UCX" TUTTI_UCX_LIBRARY
done

# The link stays cut: both ranks say so, and each that it does not hear from the other one.
start cut 4506 0 "$rank" 50
start cut 4506 1 "$rank" 50
wait_until_ready cut
"$cluster" cut "$name" 1
expect_failure cut.0 $limit timeout "all_reduce/network" "rank 1 (host $name-1) gave no sign of life"
expect_failure cut.1 $limit timeout "all_reduce/network" "rank 0 (host $name-0) gave no sign of life"
echo "passed in $SECONDS s"
