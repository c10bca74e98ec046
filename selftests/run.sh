#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0
#
# Run in the guest, in the directory with spottimer.ko and the test programs:
# load the module with good and bad parameters, run the programs, unload it.
# Prints KTAP. With arguments, only those programs are run.

params=/sys/module/spottimer/parameters
count=0
failed=0

# result NAME COMMAND…: one line, by the status of the command.
result() {
	name=$1
	shift
	count=$((count + 1))
	if "$@"; then
		echo "ok $count $name"
	else
		failed=$((failed + 1))
		echo "not ok $count $name"
	fi
}

# What is meant to fail has no business on the console.
quietly() {
	"$@" >/dev/null 2>&1
}

refuse() {
	! quietly "$@"
}

load() {
	insmod ./spottimer.ko "$@"
}

loaded() {
	[ -d /sys/module/spottimer ]
}

# log_says TEXT COMMAND…: the kernel's log has TEXT in what COMMAND adds to it.
log_says() {
	text=$1
	shift
	echo "selftests: mark $count" >/dev/kmsg
	quietly "$@"
	dmesg | sed "1,/selftests: mark $count\$/d" | grep -q "$text"
}

refuse_load() {
	refuse load "$@" && ! loaded
}

refuse_tick() {
	log_says "100000 to 1000000000" load "tick_ns=$1" && ! loaded
}

accept_load() {
	quietly load "$1=$2" && [ "$(cat $params/"$1")" = "$2" ] &&
		[ -c /dev/spottimer ] && quietly rmmod spottimer
}

# A write of the shell's own echo that fails sets its status.
set_param() {
	echo "$2" 2>/dev/null >"$params/$1"
}

refuse_param() {
	old=$(cat "$params/$1")
	refuse set_param "$1" "$2" && [ "$(cat "$params/$1")" = "$old" ]
}

accept_param() {
	old=$(cat "$params/$1")
	set_param "$1" "$2" && [ "$(cat "$params/$1")" = "$2" ] &&
		set_param "$1" "$old"
}

# The program's own results are nested, as KTAP has it.
run_program() {
	{
		"./$1" 2>&1
		echo $? >/tmp/status
	} | sed 's/^/    /'
	[ "$(cat /tmp/status)" = 0 ]
}

# Bits of the taint mask: oops (7), warning (9), soft lockup (14). What the log
# says is judged by scripts/vm.
no_splat() {
	taint=$(cat /proc/sys/kernel/tainted)
	[ $((taint & (1 << 7 | 1 << 9 | 1 << 14))) = 0 ]
}

# The program that the README shows.
run_minimal() {
	[ "$(./minimal | grep -c '^tick ')" = 5 ]
}

# The module that shows how others use the timers: of its sessions every tenth is
# silent and has to be closed, none before its time; then it goes with all of its
# timers running.
run_watchdog() {
	sessions=$((10000 / ${SPOT_SCALE:-1}))
	live=$((sessions - (sessions + 9) / 10))
	of=/sys/module/watchdog/parameters
	insmod ./watchdog.ko sessions=$sessions || return 1
	tries=0
	while [ "$(cat $of/alive)" -gt $live ] && [ $tries -lt 60 ]; do
		sleep 1
		tries=$((tries + 1))
	done
	alive=$(cat $of/alive)
	pings=$(cat $of/pings)
	early=$(cat $of/early)
	echo "# $alive of $sessions alive, $pings pings, $early closed early"
	refuse rmmod spottimer
	refused=$?
	rmmod watchdog && [ $refused = 0 ] && loaded && [ "$early" = 0 ] &&
		[ "$alive" -le $live ] && [ "$pings" -gt 0 ]
}

refuse_unload_while_open() {
	exec 3<>/dev/spottimer || return 1
	refuse rmmod spottimer
	refused=$?
	exec 3>&-
	[ $refused = 0 ] && loaded
}

unload() {
	rmmod spottimer && ! loaded && [ ! -e /dev/spottimer ]
}

# Before it is loaded for the tests
parameters_at_load() {
	result "a2_tick_ns_too_small" refuse_tick 99999
	result "a2_tick_ns_too_large" refuse_tick 1000000001
	result "a2_tick_ns_zero" refuse_tick 0
	result "a2_tick_ns_garbage" refuse_load tick_ns=fast
	result "a2_tick_ns_negative" refuse_load tick_ns=-1000000
	result "a2_tick_ns_smallest" accept_load tick_ns 100000
	result "a2_tick_ns_largest" accept_load tick_ns 1000000000
	result "a9_load_with_a_budget_of_0" refuse_load budget=0
	result "a9_load_with_a_budget_too_large" refuse_load budget=1000001
	result "a9_load_with_a_budget_ns_too_small" refuse_load budget_ns=9999
	result "a9_load_with_a_budget_ns_too_large" \
		refuse_load budget_ns=100000001
	result "a9_load_with_a_budget" accept_load budget 64
	result "h3_load_with_max_timers" accept_load max_timers 1000
	result "h3_load_with_max_user_timers" accept_load max_user_timers 1000
}

parameters_when_loaded() {
	result "a2_tick_ns_is_1_ms" test "$(cat $params/tick_ns)" = 1000000
	result "a9_budget_is_1024" test "$(cat $params/budget)" = 1024
	result "a9_budget_ns_is_1_ms" test "$(cat $params/budget_ns)" = 1000000
	result "a2_tick_ns_stays" refuse_param tick_ns 2000000
	for value in 0 1000001 -1 many ''; do
		result "a9_budget_of_'$value'" refuse_param budget "$value"
	done
	for value in 0 9999 100000001 -1 long ''; do
		result "a9_budget_ns_of_'$value'" \
			refuse_param budget_ns "$value"
	done
	for value in -1 many ''; do
		result "h3_max_timers_of_'$value'" \
			refuse_param max_timers "$value"
		result "h3_max_user_timers_of_'$value'" \
			refuse_param max_user_timers "$value"
	done
	for value in 1 1000000; do
		result "a9_budget_of_$value" accept_param budget "$value"
		result "h3_max_timers_of_$value" accept_param max_timers "$value"
		result "h3_max_user_timers_of_$value" \
			accept_param max_user_timers "$value"
	done
	for value in 10000 100000000; do
		result "a9_budget_ns_of_$value" accept_param budget_ns "$value"
	done
}

everything() {
	parameters_at_load
	result "load" load
	result "device" test -c /dev/spottimer
	parameters_when_loaded
	for program in *_test; do
		result "$program" run_program "$program"
	done
	# the same as programs of 32 bits, where there are such
	for program in *_test_32; do
		[ ! -e "$program" ] ||
			result "h1_32_bit_${program%_32}" run_program "$program"
	done
	result "sample_minimal" run_minimal
	[ ! -e watchdog.ko ] || result "i3_sample_watchdog" run_watchdog
	result "h5_no_unload_while_open" refuse_unload_while_open
	result "h5_unload" unload
	result "h5_load_again" load
	result "h5_unload_again" unload
}

echo "KTAP version 1"
if [ $# = 0 ]; then
	everything
else
	result "load" load
	for program; do
		result "$program" run_program "$program"
	done
	result "h5_unload" unload
fi
result "no_splat" no_splat
echo "1..$count"
[ $failed = 0 ]
