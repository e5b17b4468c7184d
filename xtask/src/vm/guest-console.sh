#!/usr/lib/agentd-test/busybox sh
# The guest's end of the tests' command line: runs what comes in on the second serial line. Needs nothing but busybox,
# so that it works in an initramfs too, and as PID 1 itself.
B=/usr/lib/agentd-test/busybox
[ -c /dev/ttyS1 ] || $B mount -t devtmpfs dev /dev
exec 0<>/dev/ttyS1 1>&0
$B stty raw -echo
echo TEST-CONSOLE-READY
while read -r id code; do
  output=$($B sh -c "$(echo "$code" | $B base64 -d)" 2>&1 </dev/null)
  status=$?
  echo "$id $status $(printf %s "$output" | $B base64 -w 0)"
done
