#!/usr/bin/env bash
# build_guest.sh OUTPUT_FOLDER: a kernel and an initial RAM file system for a virtual router, for machines whose kernel
# has no netem: Debian's cloud kernel, busybox and tc. Writes OUTPUT_FOLDER/vmlinuz and OUTPUT_FOLDER/initrd.
#
# The result is kept in OUTPUT_FOLDER until this script, the router's init or a package changes.
set -euo pipefail
here=$(cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)
output=${1:?usage: build_guest.sh OUTPUT_FOLDER}

die() {
  echo "build_guest.sh: $*" >&2
  exit 1
}
for program in busybox tc cpio gzip apt-get dpkg-deb ldd; do
  PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || die "$program is missing; run ./hive setup test"
done
PATH=$PATH:/usr/sbin

package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
[ -n "$package" ] || die "apt knows no linux-image-cloud-amd64; run apt-get update"
key=$({
  cat "$here/build_guest.sh" "$here/router_init.sh"
  apt-cache policy "$package" | sed -n '/Candidate/p'
  dpkg-query -W busybox iproute2
} | sha256sum)
if [ -s "$output/initrd" ] && [ -s "$output/vmlinuz" ] && [ "$(cat "$output/key" 2>/dev/null)" = "$key" ]; then exit 0; fi

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
(cd "$work" && apt-get download "$package" >/dev/null 2>&1) || die "cannot download $package"
dpkg-deb -x "$work"/linux-image-*.deb "$work/kernel"
modules=$(echo "$work"/kernel/lib/modules/*/kernel)

root=$work/root
mkdir -p "$root"/{bin,lib,lib64,modules,proc,sys,dev,tmp}
for program in busybox tc; do
  cp -L "$(command -v "$program")" "$root/bin/"
  ldd "$(command -v "$program")" | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
done
# In the order in which they are loaded.
order=(virtio/virtio_ring virtio/virtio virtio/virtio_pci_modern_dev virtio/virtio_pci_legacy_dev virtio/virtio_pci)
for name in "${order[@]/#/drivers/}" net/core/failover drivers/net/net_failover drivers/net/virtio_net net/sched/sch_netem; do
  cp "$modules/$name.ko" "$root/modules/"
  echo "/modules/${name##*/}.ko" >>"$root/modules/order"
done
cp "$here/router_init.sh" "$root/init"
chmod 755 "$root/init"

mkdir -p "$output"
rm -f -- "$output/key"
(cd "$root" && find . -print0 | cpio --quiet --null --create --format=newc | gzip -1) >"$output/initrd.new"
mv -f -- "$output/initrd.new" "$output/initrd"
cp "$work"/kernel/boot/vmlinuz-* "$output/vmlinuz"
echo "$key" >"$output/key"
