# Sourced by scripts that run one check after the other and tell their seconds in the end.
#
# section NAME COMMAND...   runs it, whatever the ones before did
# summarise                 prints what failed once more, and how long each section took, last;
#                           returns 1 if any failed
set -o pipefail
section_names=()
section_outcomes=()
section_logs=$(mktemp -d)
trap 'rm -rf "$section_logs"' EXIT

section() {
  local name=$1 start=$SECONDS outcome=passed
  shift
  printf '\n######## %s: %s\n' "$name" "$*"
  "$@" 2>&1 | tee "$section_logs/${#section_names[@]}" || outcome=FAILED
  section_names+=("$name")
  section_outcomes+=("$outcome $((SECONDS - start))")
  printf '######## %s %s s\n' "$name" "${section_outcomes[-1]}"
}

summarise() {
  local failed=0 i
  for i in "${!section_names[@]}"; do
    [[ ${section_outcomes[i]} == passed* ]] && continue
    failed=1
    printf '\n######## %s failed\n' "${section_names[i]}"
    { grep -E -A 30 '^-------- .* failed$|FAILED:|error:' "$section_logs/$i" || true
      tail -n 30 "$section_logs/$i"; } | cut -c 1-300 | head -n 120 || true
  done
  printf '\n%-20s %8s\n' section seconds
  for i in "${!section_names[@]}"; do
    read -r outcome seconds <<<"${section_outcomes[i]}"
    printf '%-20s %8s%s\n' "${section_names[i]}" "$seconds" "${outcome/passed/}"
  done | sed 's/FAILED/  FAILED/'
  printf '%-20s %8s\n' all "$SECONDS"
  return "$failed"
}
