#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0
#
# Run in the guest: lose some memory on purpose, run the selftests that are named
# by the arguments, and see that the kernel has found the one and nothing else.
# Prints KTAP.

# Some functions are called by way of "$@".
# shellcheck disable=SC2317

leaks=/sys/kernel/debug/kmemleak
count=0
status=0

# result NAME COMMAND…: one line, by the status of the command.
result() {
	name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count $name"
	else
		status=1
		echo "not ok $count $name"
	fi
}

# The canary stays loaded, for else its functions had no names any more. Those
# of spottimer have none, so all else is taken to be ours; but the kernel itself
# loses a name where it cannot make the directory of a cache in sysfs.
others() {
	awk '
		function end_object() {
			if (!known)
				printf "%s", object
			object = ""
			known = 0
		}
		/^unreferenced/ { end_object() }
		/canary_leak|sysfs_slab_add/ { known = 1 }
		{ object = object "# " $0 "\n" }
		END { end_object() }' /tmp/leaks
}

nothing_else() {
	others
	[ -z "$(others)" ]
}

insmod ./canary.ko what=leak
sh ./run.sh "$@" || status=1

# An object is reported when it is 5 s old and looks as it did in the scan before.
sleep 6
echo scan >$leaks
echo scan >$leaks
cat $leaks >/tmp/leaks

echo "KTAP version 1"
result "the kernel finds canary 'leak'" grep -q canary_leak /tmp/leaks
result "h5_nothing_is_lost" nothing_else
echo "1..$count"
exit $status
