#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0
#
# Run in the guest: make each mistake, in an order in which the report of one
# does not keep the kernel from looking for the next.

for what in deadlock sleep list free; do
	insmod ./canary.ko "what=$what"
	rmmod canary
done
