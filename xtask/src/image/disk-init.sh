#!/bin/busybox sh
# The initramfs of the disk image: brings up the disks, lays the second one's tar over the first, hands over to init.
B=/bin/busybox
$B mount -t proc proc /proc
$B mount -t devtmpfs dev /dev
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
  $B insmod /modules/$module.ko
done
init=/sbin/init
mode=rw
for word in $($B cat /proc/cmdline); do
  case $word in
    init=*) init=${word#init=} ;;
    # As most boot loaders have it: the init makes / writable itself.
    ro) mode=ro ;;
  esac
done
$B mount -t ext4 /dev/vda /new || $B poweroff -f
[ -b /dev/vdb ] && $B tar -C /new -xf /dev/vdb
[ $mode = ro ] && $B mount -o remount,ro /new
$B umount /proc
$B mount --move /dev /new/dev
exec $B switch_root /new "$init"
