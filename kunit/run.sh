#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0
#
# Run in the guest: load the module with its KUnit tests in it, which run then,
# and print their results out of the kernel's log.

dmesg -c >/dev/null
insmod ./spottimer.ko || exit
dmesg | sed -n 's/^\[[^]]*\] //; /^ *\(KTAP\|1\.\.\|ok \|not ok \|# \)/p' |
	tee /tmp/results
rmmod spottimer || exit
grep -q '^ok ' /tmp/results && ! grep -q '^not ok ' /tmp/results
