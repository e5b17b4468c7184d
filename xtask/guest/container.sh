#!/bin/sh
# Makes a container of the folder $1 as a runtime does, and becomes its PID 1. Runs as root in new namespaces (mount, pid,
# uts, ipc, net); $2 is a FIFO that becomes its console.
set -eu
root=$1 console=$2
# A root that is no mount point cannot be made private or read-only by those that live in it.
mount --bind "$root" "$root"
mount -t proc -o nosuid,noexec,nodev proc "$root/proc"
mount -t sysfs -o nosuid,noexec,nodev,ro sysfs "$root/sys"
mount -t tmpfs -o nosuid,mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
  : > "$root/dev/$node"
  mount --bind "/dev/$node" "$root/dev/$node"
done
: > "$root/dev/console"
mount --bind "$console" "$root/dev/console"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o nosuid,noexec,newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
for link in fd:/proc/self/fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
  ln -s "${link#*:}" "$root/dev/${link%%:*}"
done
for folder in run tmp dev/shm; do mount -t tmpfs -o nosuid,nodev tmpfs "$root/$folder"; done
# A cgroup of its own where the host has the unified hierarchy, alone or beside the old one.
host=$(awk '$3 == "cgroup2" {print $2; exit}' /proc/mounts)
if [ -n "$host" ]; then
  mine=$host/agentd-container-$3
  mkdir -p "$mine"
  echo 0 > "$mine/cgroup.procs"
  exec unshare --cgroup sh -c 'mount -t cgroup2 -o nosuid,noexec,nodev cgroup2 "$0/sys/fs/cgroup" && exec env -i container=xtask \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$0" /sbin/init' "$root"
fi
exec env -i container=xtask PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /sbin/init
