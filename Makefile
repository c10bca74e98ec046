# SPDX-License-Identifier: GPL-2.0
#
# Out-of-tree builds and tests. What the kernel's build reads is in Kbuild.

KDIR ?= /lib/modules/$(shell uname -r)/build

.DEFAULT_GOAL := modules
.PHONY: modules samples clean demo check lint harness kunit selftests debug kmemleak \
	kcsan bench bench-quick bench-wheel help

modules:		## build spottimer.ko for the running kernel (KDIR= for another)
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

samples: modules	## build the modules that use it in the kernel, too
	for dir in samples/watchdog bench/module; do \
		$(MAKE) -C $(KDIR) M=$(CURDIR)/$$dir \
			KBUILD_EXTRA_SYMBOLS=$(CURDIR)/Module.symvers \
			modules || exit; \
	done

clean:			## remove what `make modules` and `make harness` have built
	$(MAKE) -C $(KDIR) M=$(CURDIR)/samples/watchdog clean
	$(MAKE) -C $(KDIR) M=$(CURDIR)/bench/module clean
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	[ ! -e harness/Makefile ] || $(MAKE) -C harness clean

demo:			## see it work in a virtual machine; no kernel build (CPUS=2 MEM=2G)
	scripts/demo

check:			## the tests below but kcsan, and the demo; ends with one line
	scripts/check

lint:			## warnings on every kernel, sparse, checkpatch, shellcheck
	scripts/lint

harness:		## the wheel and the overrun arithmetic in userspace, with sanitizers
	$(MAKE) -C harness check

bench-wheel:		## how fast the wheel is beside a heap and a tree (BENCH=quick)
	scripts/bench-wheel $(BENCH)

kunit:			## KUnit tests in a kernel built for them
	scripts/kunit

selftests:		## the module on stock Debian kernels (KERNEL=6.1 or 6.12 for one)
	scripts/selftests

debug:			## KUnit and selftests on a kernel that looks for mistakes
	scripts/debug debug

kmemleak:		## some selftests on that kernel, looking for lost memory
	scripts/debug kmemleak

kcsan:			## KUnit and selftests on a kernel that looks for data races
	scripts/debug kcsan

bench:			## beside timerfd, POSIX timers, io_uring and libevent (a quarter of an hour)
	scripts/bench

bench-quick:		## the same with less of everything, in two minutes
	scripts/bench quick

help:			## this list
	@sed -n 's/^\([a-z-]*\):\t*## /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r target text; do \
			printf '  make %-11s %s\n' "$$target" "$$text"; \
		done
	@echo
	@echo "Packages, kernels and builds are kept in \$$SPOTTIMER_CACHE,"
	@echo "by default ~/.cache/spottimer; all of it may be removed."
