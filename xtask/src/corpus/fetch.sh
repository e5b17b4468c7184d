#!/bin/bash
# Fetches Debian packages and keeps the systemd files of each: fetch.sh CACHE SET PACKAGE…
# CACHE/NAME_VERSION_ARCH holds a package's files, one folder a version, whole or not at all; SET gets a link to each
# of those that were asked for.
set -euo pipefail
cache=$1 set=$2
shift 2
umask 022
mkdir -p "$cache"
apt="apt-get -qq -o APT::Sandbox::User=root"
list() { $apt download --print-uris "$@" 2>/dev/null | awk '{sub(/\.deb$/, "", $2); print $2}'; }
missing() { for name; do [ -d "$cache/$name" ] || echo "${name%%_*}"; done; }
mapfile -t names < <(list "$@")
if [ "${#names[@]}" -ne $# ] || [ -n "$(missing "${names[@]}")" ]; then
  # The index may be older than the mirror, which keeps only the newest build.
  $apt update
  mapfile -t names < <(list "$@")
  [ "${#names[@]}" -eq $# ] || { echo "apt does not know every package: is this Debian 12?" >&2; exit 1; }
  mapfile -t wanted < <(missing "${names[@]}")
  echo "corpus: fetching ${#wanted[@]} packages"
  work=$(mktemp -d "$cache/partial.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  $apt download "${wanted[@]}"
  for deb in *.deb; do
    mkdir kept
    # Not every package has every folder, which tar would call an error.
    dpkg-deb --fsys-tarfile "$deb" | tar -x -C kept --wildcards '*/systemd/system/*' '*/systemd/user/*' 2>/dev/null ||
      [ "${PIPESTATUS[0]}" -eq 0 ]
    mv -T kept "$cache/${deb%.deb}"
  done
fi
for name in "${names[@]}"; do
  ln -s "$cache/$name" "$set/${name%%_*}"
done
