#!/bin/busybox sh
# shellcheck shell=dash
# The first and only process of the virtual router: forwards between eth0 and eth1, and runs the commands that come over
# the second serial port, one a line. Answers each with its output's lines, then "done STATUS".
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "$module"; done </modules/order
echo 1 >/proc/sys/net/ipv4/ip_forward
stty -F /dev/ttyS1 raw -echo
exec 3<>/dev/ttyS1
echo "done 0" >&3
while read -r line <&3; do
  sh -c "$line" >/tmp/output 2>&1 </dev/null 3<&-
  status=$?
  cat /tmp/output >&3
  echo "done $status" >&3
done
