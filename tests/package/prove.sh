#!/usr/bin/env bash
# Proves one thing about an installed copy of tutti:
#   prove.sh product BUILD NINJA      the target tutti_product builds all that installing copies
#   prove.sh install BUILD WORK       installs BUILD into WORK/prefix, then moves it to WORK/moved
#   prove.sh cmake FORM WORK PROGRAM  a project finds it by find_package, builds and runs
#   prove.sh pkg_config WORK PROGRAM  a program is built with what pkg-config says, and runs
#   prove.sh headers WORK             each public header compiles alone and needs no other library
#   prove.sh headers_refused WORK     and a header that does not is refused
#   prove.sh symbols WORK             libtutti.so exports what the public headers declare, no more
#   prove.sh symbols_refused WORK     and what is missing or too much is refused
#   prove.sh one_member WORK          structs may be initialised in part under the strictest warnings
#   prove.sh packages BUILD WORK      each Debian package has its part, and the command runs from it
#   prove.sh defaults SOURCE WORK     configured without options, there is nothing but the product
#   prove.sh architectures SOURCE WORK  `native` is what nvidia-smi says, or sm_90a
#   prove.sh no_test_code WORK LIBRARY...  the library holds no test code; the LIBRARYs do (control)
# The compilers are $CXX and $CC.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cxx=${CXX:-c++}
cc=${CC:-cc}

die() { printf 'package: %s\n' "$*" >&2; exit 1; }

# builds_what_is_installed BUILD NINJA TARGET
builds_what_is_installed() {
  local build=$1 words file count=0
  words=$("$2" -C "$build" -t commands "$3" | tr -s ' ' '\n')
  while read -r file; do
    grep -qxF "${file#"$build"/}" <<<"$words" || { echo "$3 does not build $file"; return 1; }
    count=$((count + 1))
  done < <(find "$build" -name cmake_install.cmake -exec grep -ohE '"[^"]+"' {} + | tr -d '"' |
    grep -E "^$build/(bin|lib)/" | sort -u)
  echo "$3 builds the $count files of bin/ and lib/ that are installed"
  [[ $count -ge 3 ]]
}

prove_product() {
  builds_what_is_installed "$@" tutti_product || die "installing behind ./dev bench would fail"
  ! builds_what_is_installed "$@" tutti_cli || die "the command alone was accepted"
}

install_copy() {
  local build=$1 work=$2
  rm -rf "$work" && mkdir -p "$work"
  cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
  mv "$work/prefix" "$work/moved"  # nothing may depend on where it was installed
  find "$work/moved" -type f | sort
}

library_dir() { dirname "$(find "$1/moved" -name libtutti.so)"; }

prove_cmake() {
  local form=$1 work=$2 program=$3 build
  build=$work/$form-$(basename "$program")
  rm -rf "$build"
  cmake -S "$here/consumer" -B "$build" -DCMAKE_PREFIX_PATH="$work/moved" -DFORM="$form" \
    -DPROGRAM="$program" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc"
  cmake --build "$build"
  "$build/consumer"
}

prove_pkg_config() {
  local work=$1 program=$2 libraries flags
  libraries=$(library_dir "$work")
  export PKG_CONFIG_PATH=$libraries/pkgconfig
  pkg-config --exact-version="$(sed -n 's/.*TUTTI_VERSION_STRING "\(.*\)"/\1/p' \
    "$work/moved/include/tutti/c/version.h")" tutti || die "tutti.pc and version.h differ"
  read -ra flags <<<"$(pkg-config --cflags --libs tutti)"
  [[ " ${flags[*]}" != *" -std"* ]] || die "tutti.pc chooses the program's C++ standard"
  "$cxx" -std=c++20 "$program" -o "$work/by_pkg_config" "${flags[@]}" -pthread
  LD_LIBRARY_PATH=$libraries "$work/by_pkg_config"
}

# compiles_alone INCLUDE HEADER: with the strictest warnings, and nothing but the standard library
# and the system among what it reads.
compiles_alone() {
  local include=$1 header=$2 read_files
  read_files=$(printf '#include "%s"\nint main() {}\n' "$header" |
    "$cxx" -std=c++20 -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wpedantic -Werror \
      -I"$include" -fsyntax-only -MD -MF /dev/stdout -x c++ -) || return 1
  ! grep -E '/(fmt|nlohmann|CLI|gtest)/|/src/' <<<"$read_files"
}

# c_compiles_alone INCLUDE HEADER: as C11, and as the oldest C++ that has what it needs.
c_compiles_alone() {
  local include=$1 header=$2 program
  program=$(printf '#include "%s"\nint main(void) { return 0; }\n' "$header")
  "$cc" -std=c11 -Wall -Wextra -Wshadow -Wconversion -pedantic -Werror -I"$include" -fsyntax-only \
    -x c - <<<"$program" || return 1
  "$cxx" -std=c++11 -Wall -Wextra -Wshadow -Wconversion -pedantic -Werror -I"$include" \
    -fsyntax-only -x c++ - <<<"$program"
}

prove_headers() {
  local include=$1/moved/include header count=0
  while read -r header; do
    c_compiles_alone "$include" "$header" || die "$header does not stand alone"
    count=$((count + 1))
  done < <(cd "$include" && find tutti -name '*.h' | sort)
  [[ $count -ge 11 ]] || die "only $count headers of the C API were installed"
  while read -r header; do
    compiles_alone "$include" "$header" || die "$header does not stand alone"
    count=$((count + 1))
  done < <(cd "$include" && find tutti -name '*.hpp' | sort)
  [[ $count -ge 7 ]] || die "only $count headers were installed"
  echo "$count headers stand alone"
}

prove_headers_refused() {
  local bad=$1/bad
  mkdir -p "$bad"
  printf 'inline std::string text() { return {}; }\n' >"$bad/lacks_include.hpp"
  printf '#include <nlohmann/json_fwd.hpp>\n' >"$bad/needs_json.hpp"
  printf 'inline char low(int value) { return value; }\n' >"$bad/narrows.hpp"
  printf 'typedef struct { int value = 1; } c_t;\n' >"$bad/is_not_c.h"
  ! c_compiles_alone "$bad" is_not_c.h 2>/dev/null || die "is_not_c.h was accepted"
  for header in lacks_include needs_json narrows; do
    ! compiles_alone "$bad" "$header.hpp" 2>/dev/null || die "$header.hpp was accepted"
  done
}

prove_one_member() {
  "$cxx" -std=c++20 -Wall -Wextra -Werror -I"$1/moved/include" -fsyntax-only "$here/one_member.cpp"
}

# unpacked FOLDER PACKAGE: the files of FOLDER/PACKAGE_*.deb, unpacked into FOLDER/root.
unpacked() {
  local deb
  deb=$(find "$1" -maxdepth 1 -name "$2_*.deb")
  dpkg-deb -x "$deb" "$1/root"
  dpkg-deb -c "$deb" | sed -n 's/^[^d].* \.\(\/[^ ]*\).*/\1/p'
}

# has FILES PATTERN: whether one of the files, one per line, matches.
has() { grep -qE "$2" <<<"$1" || die "a package lacks $2; it has: $1"; }
lacks() { ! grep -E "$2" <<<"$1" || die "a package has $2"; }

prove_packages() {
  local build=$1 folder=$2/packages library development tools
  command -v dpkg-deb >/dev/null || { echo "no dpkg-deb here"; exit 77; }
  rm -rf "$folder" && mkdir -p "$folder"
  cpack --config "$build/CPackConfig.cmake" -B "$folder" >"$folder/log" || { cat "$folder/log"; exit 1; }
  library=$(unpacked "$folder" libtutti)
  development=$(unpacked "$folder" libtutti-dev)
  tools=$(unpacked "$folder" tutti-tools)
  has "$library" '/libtutti\.so\.0\.1$'
  lacks "$library" '\.hpp$|\.h$|\.a$|/bin/'
  has "$development" '/include/tutti/tutti\.hpp$'
  has "$development" '/include/tutti/tutti\.h$'
  has "$development" '/include/tutti/c/collectives\.h$'
  has "$development" '/libtutti\.so$'
  has "$development" '/libtutti\.a$'
  has "$development" '/tutti-config\.cmake$'
  has "$development" '/tutti\.pc$'
  lacks "$development" 'libtutti\.so\.|/bin/'
  has "$tools" '^/usr/bin/tutti$'
  lacks "$tools" '/include/|/lib/'
  dpkg-deb -f "$folder"/libtutti-dev_*.deb Depends | grep -F 'libtutti (= ' >/dev/null ||
    die "libtutti-dev does not need its libtutti"
  "$folder/root/usr/bin/tutti" --version
  has "$(tar -tf "$folder"/tutti-*.tar.gz)" '/bin/tutti$'
}

prove_defaults() {
  local source=$1 build=$2/defaults option
  rm -rf "$build"
  cmake -S "$source" -B "$build" -DTUTTI_CUDA=OFF -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
  for option in TUTTI_TESTS:BOOL=OFF TUTTI_EXAMPLES:BOOL=OFF TUTTI_WERROR:BOOL=OFF TUTTI_TOOLS:BOOL=ON \
    CMAKE_BUILD_TYPE:STRING=Release; do
    grep -xF "$option" "$build/CMakeCache.txt" || die "$option is not the default"
  done
  ! cmake --build "$build" --target help | grep -E 'gtest|unit_|example_|conformance' ||
    die "more than the product would be built"
}

# chosen SOURCE FOLDER ARCHITECTURE...: as CMAKE_CUDA_ARCHITECTURES has them, with FOLDER's nvidia-smi.
chosen() {
  local source=$1 folder=$2
  shift 2
  cat >"$folder/choose.cmake" <<SCRIPT
cmake_minimum_required(VERSION 3.25)
include($source/cmake/tutti_architectures.cmake)
tutti_architectures(all $*)
message("\${all}")
SCRIPT
  cmake -DTUTTI_NVIDIA_SMI="$folder/nvidia-smi" -P "$folder/choose.cmake" 2>&1
}

# expect_chosen CAPABILITIES EXPECTED SOURCE FOLDER ARCHITECTURE...
expect_chosen() {
  local capabilities=$1 expected=$2 found
  shift 2
  printf '#!/bin/sh\nprintf "%s"\n' "$capabilities" >"$2/nvidia-smi"
  chmod +x "$2/nvidia-smi"
  found=$(chosen "$@")
  [[ $found == "$expected" ]] || die "GPUs of $capabilities: $found instead of $expected"
}

prove_architectures() {
  local source=$1 folder=$2/architectures
  mkdir -p "$folder"
  expect_chosen '9.0\n9.0\n' 90a-real "$source" "$folder" native
  expect_chosen '8.0\n10.0\n' '80;100a-real' "$source" "$folder" native
  expect_chosen '7.5\n' 90a-real "$source" "$folder" native
  expect_chosen 'No devices were found\n' 90a-real "$source" "$folder" native
  expect_chosen '9.0\n' '80;100a-real' "$source" "$folder" 80 100a
  rm "$folder/nvidia-smi"
  [[ $(chosen "$source" "$folder" native) == 90a-real ]] || die "without nvidia-smi it is not 90a"
}

# with_symbols SCRIPT WORK: runs it on the headers, on libtutti.so, and on programs that call every
# function.
with_symbols() {
  local script=$1 work=$2 object
  object=$work/$(basename "$script" .py)
  "$cxx" -std=c++20 -I"$work/moved/include" -c "$here/every_function.cpp" -o "$object.o"
  "$cc" -std=c11 -I"$work/moved/include" -c "$here/every_function.c" -o "$object.c.o"
  python3 -B "$here/$script" "$work/moved/include" "$(library_dir "$work")/libtutti.so" \
    "$object.o" "$object.c.o"
}

prove_symbols() {
  readelf -d "$(library_dir "$1")/libtutti.so" | grep 'SONAME.*\[libtutti\.so\.0\.1\]' >/dev/null ||
    die "no soname"
  with_symbols surface.py "$1"
}

# holds_test_code LIBRARY: whether it defines a fake of the machine or a simulated rank.
# grep reads to the end: if it stopped early, nm would fail.
holds_test_code() {
  nm -C --defined-only "$1" | grep -E ' tutti::(Fake|Simulated|simulated::)' >/dev/null
}

prove_no_test_code() {
  local work=$1 library
  shift
  for library in "$(library_dir "$work")"/libtutti.{a,so}; do
    ! holds_test_code "$library" || die "$library holds test code"
  done
  for library in "$@"; do
    holds_test_code "$library" || die "control: $library holds test code, which was not seen"
  done
}

what=$1
shift
case "$what" in
  product) prove_product "$@" ;;
  install) install_copy "$@" ;;
  cmake) prove_cmake "$@" ;;
  pkg_config) prove_pkg_config "$@" ;;
  headers) prove_headers "$@" ;;
  headers_refused) prove_headers_refused "$@" ;;
  symbols) prove_symbols "$@" ;;
  one_member) prove_one_member "$@" ;;
  packages) prove_packages "$@" ;;
  defaults) prove_defaults "$@" ;;
  architectures) prove_architectures "$@" ;;
  no_test_code) prove_no_test_code "$@" ;;
  symbols_refused) with_symbols surface_test.py "$@" ;;
  *) die "unknown proof $what" ;;
esac
