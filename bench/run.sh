#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What scripts/bench runs in its virtual machine, where the modules and the program
# lie in this directory: run.sh instructions|time quick|full.

mode=$1 size=$2

echo "# Linux $(uname -r), $(nproc) CPUs, $(awk '/MemTotal/ { print $2 }' /proc/meminfo) kB, $mode"

# The program pays for the kernel's memory in a cgroup of its own.
mkdir -p /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit
mkdir /sys/fs/cgroup/bench || exit
echo +memory >/sys/fs/cgroup/cgroup.subtree_control || exit
echo $$ >/sys/fs/cgroup/bench/cgroup.procs || exit

insmod ./spottimer.ko || exit

# What there is in the kernel is measured while a module is loaded, and told by it in
# the kernel's log.
case $mode-$size in
*-quick)	sizes=1000,10000 rounds=1 ;;
instructions-*)	sizes=1000,10000,100000,1000000 rounds=1 ;;
*)		sizes=1000,10000,100000 rounds=3 ;;
esac
insmod ./spot_bench.ko n=$sizes rounds=$rounds || exit
dmesg | sed -n 's/^.*spot_bench: \({.*}\)$/\1/p'
rmmod spot_bench

# Nothing is printed meanwhile: the serial line would be part of it.
own() {
	echo "# bench $*"
	./bench "$@" >/tmp/results
	status=$?
	cat /tmp/results
	[ $status = 0 ] || exit $status
}

# What is known to the last digit needs no rounds. Of a million timers not all can
# be measured in reasonable time. What waits much comes last: there two runs may
# become different by a nanosecond, and stay so. How long a pass takes is not
# measured by the clock: it would be how long the host did something else.
case $mode-$size in
instructions-quick)
	own --instructions --counts 1000,10000 arm
	own --instructions --counts 10000 memory lease stall
	own --instructions --counts 1000,10000 --seconds 1 fire repeat
	;;
instructions-full)
	own --instructions --counts 1000,10000,100000 arm
	own --instructions --counts 1000000 --who spottimer,timerfd,uring,heap arm
	own --instructions --counts 100000 memory lease stall pass
	own --instructions --counts 1000,10000,100000 fire
	own --instructions --counts 1000000 --who spottimer,uring,heap fire
	own --instructions --seconds 2 repeat sessions idle lateness
	;;
time-quick)
	own --counts 1000,10000 --rounds 3 arm
	own --counts 10000 --seconds 1 fire lateness repeat sessions idle
	;;
time-full)
	own --counts 1000,10000 --rounds 5 arm
	own --counts 100000 --rounds 3 arm
	own --counts 1000,10000,100000 --rounds 3 --seconds 3 fire lateness
	own --counts 1000000 arm
	own --counts 1000000 --who spottimer,uring,heap fire
	own --rounds 3 lease stall
	own --seconds 10 repeat
	own --seconds 5 sessions idle
	;;
esac
