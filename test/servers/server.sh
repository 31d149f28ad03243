# What the scripts that start a server share. A server is this machine's own, or of the release $suite of Debian, of which
# $packages are installed into a folder of their own, $home. A script sets these, $program and its $options, sources this,
# and adds what differs: "sql PORT STATEMENT" asks a server, "initialize DATA" makes its first data.

fail() {
  echo "test/servers/$(basename "$0"): $*" >&2
  exit 1
}

# The machine's own mirror also carries the other releases; both formats of apt's sources are read.
mirror() {
  local sources
  sources=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
  grep -v '^ *#' <<<"$sources" | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' '
}

install() {
  if [[ -z $home ]]; then
    command -v "$program" >/dev/null && return
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${packages//,/ } >/dev/null
    return
  fi
  [[ -e $home/usr/sbin ]] && return
  [[ $(id -u) == 0 ]] || fail 'installing a server needs root'
  if ! command -v debootstrap >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null
  fi
  mkdir -p "$(dirname "$home")"
  exec 9>"$home.lock" # two installations at once: the second waits and finds it done
  flock 9
  if [[ ! -e $home/usr/sbin ]]; then
    local url
    url=$(mirror) || fail 'found no Debian mirror in the sources of apt'
    rm -rf "$home.new"
    debootstrap --variant=minbase --include="$packages" "$suite" "$home.new" "$url" \
      >"$home.log" 2>&1 || fail "debootstrap failed, see $home.log"
    mv "$home.new" "$home"
  fi
  exec 9>&-
}

# A server inside its folder sees its data at this path, by a bind mount that ends with it.
place() { if [[ -z $home ]]; then echo "$1"; else echo "/srv/${1//\//_}"; fi; }

inside() { ${home:+chroot "$home"} "$@"; }

# serve PORT DIR [OPTION…] starts a server and waits until it answers.
serve() {
  local port=$1 dir at
  install
  mkdir -p "$2"
  dir=$(realpath "$2")
  shift 2
  at=$(place "$dir")
  sql "$port" 'SELECT 1' >/dev/null && fail "port $port is taken by another server"
  if [[ -n $home ]]; then
    mkdir -p "$home$at"
    mountpoint -q "$home$at" || mount --bind "$dir" "$home$at"
  fi
  if [[ ! -d $dir/data ]]; then
    initialize "$at/data" >"$dir/init.log" 2>&1 || fail "cannot initialise, see $dir/init.log"
  fi
  setsid ${home:+chroot "$home"} "$program" --no-defaults --user="$(id -un)" --datadir="$at/data" --pid-file="$at/mysqld.pid" \
    --socket="$at/mysqld.sock" --port="$port" --bind-address=127.0.0.1 --max-connections=500 "${options[@]}" "$@" \
    >"$dir/server.log" 2>&1 </dev/null &
  local server=$!
  for _ in $(seq 240); do
    sql "$port" 'SELECT 1' >/dev/null && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.25
  done
  kill -KILL "$server" 2>/dev/null || true
  tail -n 5 "$dir/server.log" >&2
  fail 'the server did not start'
}

start() {
  serve "$1" "$2"
  sql "$1" 'CREATE DATABASE IF NOT EXISTS delaytask' || fail 'the server takes no writes'
  echo "root@tcp(127.0.0.1:$1)/delaytask"
}

end() {
  local signal=$1 dir at pid
  dir=$(realpath "$2")
  at=$(place "$dir")
  if pid=$(cat "$dir/mysqld.pid" 2>/dev/null); then
    kill "-$signal" "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    rm -f "$dir/mysqld.pid"
  fi
  if [[ -n $home ]] && mountpoint -q "$home$at"; then
    # A client that asks just now, inside the folder, keeps it busy for a moment.
    timeout 10 bash -c 'until umount "$1" 2>/dev/null; do sleep 0.1; done' - "$home$at" || umount "$home$at"
    rmdir "$home$at"
  fi
}

