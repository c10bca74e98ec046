#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# What scripts/demo runs in its virtual machine, where the module and the
# program lie in this directory: demo.sh [SECONDS [SPOTS]].

insmod ./spottimer.ko || exit
./spots ${1:+"$1"} ${2:+"$2"}
status=$?
rmmod spottimer || exit
exit "$status"
