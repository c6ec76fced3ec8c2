#!/usr/bin/env bash
# Installs what a purpose needs, says what it does, and touches nothing that is there already.
#
#   scripts/install_packages.sh build|test|bench|lint ...
#
# Debian 12 and 13 and Ubuntu 24.04, as root or with sudo, without questions. Python tools go into .venv,
# Node clients into tests/node/node_modules, Go clients into Go's own module cache.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'packages: %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    say "this needs root or sudo: $*" >&2
    return 1
  fi
}

# Debian 12's default Boost is 1.74; its 1.81 has names of its own. Later releases have 1.83 or newer.
boost_packages() {
  if is_installed libboost1.81-dev || [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = bookworm ]; then
    echo libboost1.81-dev libboost-json1.81-dev
  else
    echo libboost-dev libboost-json-dev
  fi
}

packages_for() {
  case "$1" in
    build)
      echo g++ make cmake ninja-build ccache pkg-config python3 curl ca-certificates tzdata bsdextrautils
      boost_packages
      echo libssl-dev libyaml-cpp-dev libsimdjson-dev libspdlog-dev libfmt-dev libcli11-dev
      echo libhowardhinnant-date-dev libnghttp2-dev
      ;;
    test)
      packages_for build
      echo libprotobuf-dev protobuf-compiler libgtest-dev libgmock-dev librapidcheck-dev libhttp-parser-dev clang-19 libclang-rt-19-dev openssl git
      have node && have npm || echo nodejs npm
      have go || echo golang-go
      python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || echo python3-venv
      have promtool || echo prometheus
      echo faketime redis-server redis-tools valkey-server valkey-tools
      echo nginx-light caddy haproxy
      ;;
    bench)
      packages_for build
      echo libbenchmark-dev nginx-light haproxy wrk redis-server redis-tools
      echo nghttp2-client libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
      ;;
    lint)
      packages_for test
      echo clang-format-19 clang-tidy-19 libbenchmark-dev shellcheck
      ;;
    *)
      say "no such purpose: $1 (build, test, bench or lint)" >&2
      return 2
      ;;
  esac
}

# Debian 12 has Valkey in its backports only; other releases have it in their main archive.
add_backports_for() {
  local sources=/etc/apt/sources.list.d/weir-backports.sources
  case " $* " in *" valkey-server "*) ;; *) return 0 ;; esac
  if [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" != bookworm ] || [ -e "$sources" ] ||
    apt-cache policy valkey-server 2>/dev/null | grep -q 'Candidate: [^(]'; then
    return 0
  fi
  say "adds the suite bookworm-backports in $sources, for valkey-server"
  printf '%s\n' 'Types: deb' 'URIs: http://deb.debian.org/debian' 'Suites: bookworm-backports' 'Components: main' \
    'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg' | as_root tee "$sources" >/dev/null
}

# Installs without starting the daemons that some of the packages bring: the tests start their own.
apt_install() {
  local policy=/usr/sbin/policy-rc.d unit
  say "apt-get install $*"
  add_backports_for "$@"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 update
  local policy_is_ours=no
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod +x "$policy"
    policy_is_ours=yes
  fi
  local code=0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install "$@" >/dev/null || code=$?
  if [ "$policy_is_ours" = yes ]; then as_root rm -f "$policy"; fi
  if [ "$code" -ne 0 ]; then
    say "apt-get failed ($code)" >&2
    return "$code"
  fi
  for unit in nginx haproxy caddy prometheus redis-server valkey-server; do
    case " $* " in
      *" $unit"*) if have systemctl; then as_root systemctl disable --quiet "$unit" 2>/dev/null || true; fi ;;
    esac
  done
}

install_debian_packages() {
  local missing=() package
  for package in $(for purpose in "$@"; do packages_for "$purpose"; done | tr ' ' '\n' | sort -u); do
    is_installed "$package" || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "all Debian packages for $* are there"
    return
  fi
  if ! have apt-get; then
    say "not a Debian system; please install the equivalents of: ${missing[*]}" >&2
    return 1
  fi
  apt_install "${missing[@]}"
}

# A stamp inside the tree it vouches for, holding the checksum of what was asked for.
is_current() { [ -f "$1" ] && [ "$(cat "$1")" = "$(cat "${@:2}" 2>/dev/null | sha256sum)" ]; }
stamp() { cat "${@:2}" 2>/dev/null | sha256sum >"$1"; }

install_python_tools() {
  local file stamp_file
  for file in "$@"; do
    stamp_file=.venv/.weir-$(basename "$file")
    if [ ! -f "$file" ] || is_current "$stamp_file" "$file"; then continue; fi
    say "Python tools of $file into .venv"
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$file" </dev/null
    stamp "$stamp_file" "$file"
  done
}

install_node_clients() {
  local folder=tests/node lock=()
  if [ ! -f $folder/package.json ]; then return; fi
  if [ -f $folder/package-lock.json ]; then lock=("$folder/package-lock.json"); fi
  local stamp_file=$folder/node_modules/.weir-package
  if is_current "$stamp_file" $folder/package.json "${lock[@]}"; then return; fi
  say "Node clients into $folder/node_modules"
  if [ ${#lock[@]} -gt 0 ]; then
    (cd $folder && npm ci --silent --no-audit --no-fund </dev/null)
  else
    (cd $folder && npm install --silent --no-audit --no-fund --no-package-lock </dev/null)
  fi
  stamp "$stamp_file" $folder/package.json "${lock[@]}"
}

# The modules that tests/go and tests/go/h2spec name, compiled into the cache that the tests build from.
install_go_clients() {
  local folder=tests/go tool=tests/go/h2spec stamp_file
  local files=("$folder/go.mod" "$folder/go.sum" "$tool/go.mod" "$tool/go.sum")
  stamp_file=$(go env GOMODCACHE)/.weir-go-mod
  if is_current "$stamp_file" "${files[@]}"; then return; fi
  say "Go clients into $(go env GOMODCACHE)"
  (cd $folder && go build -o /dev/null . </dev/null)
  (cd $tool && go build -o /dev/null github.com/summerwind/h2spec/cmd/h2spec </dev/null)
  stamp "$stamp_file" "${files[@]}"
}

if [ $# -eq 0 ]; then
  say "usage: $0 build|test|bench|lint ..." >&2
  exit 2
fi
for purpose in "$@"; do packages_for "$purpose" >/dev/null; done
install_debian_packages "$@"
for purpose in "$@"; do
  case "$purpose" in
    test)
      install_python_tools tests/requirements.txt
      install_node_clients
      install_go_clients
      ;;
    lint) install_python_tools tests/requirements.txt scripts/requirements-lint.txt ;;
  esac
done
