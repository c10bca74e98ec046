#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0
#
# Run in the guest: make the mistakes that are named by the arguments, those with
# timers by 'timer-'. That a warning is the end of the kernel, as it is for the
# tests, has to wait for the one that shows it.

panic=$(cat /proc/sys/kernel/panic_on_warn)
echo 0 >/proc/sys/kernel/panic_on_warn

for what; do
	[ "$what" != warn ] || echo "$panic" >/proc/sys/kernel/panic_on_warn
	case $what in
	timer-*)
		insmod ./spottimer.ko
		insmod ./misuse.ko "what=${what#timer-}"
		rmmod misuse ;;
	*)
		insmod ./canary.ko "what=$what"
		rmmod canary ;;
	esac
done
