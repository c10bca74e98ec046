// SPDX-License-Identifier: GPL-2.0
/*
 * POSIX timers, with a queued signal each, taken many at a time by signalfd(2).
 * The time to make one grows with their number: a million of them did not come to
 * an end.
 */
#include "bench.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static int signals;
static int *ids;

static void posix_open(long n)
{
	struct rlimit limit = { n + 100, n + 100 };
	sigset_t set;

	/* each has its signal allocated when it is made */
	if (setrlimit(RLIMIT_SIGPENDING, &limit))
		err(1, "RLIMIT_SIGPENDING");
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		err(1, "sigprocmask");
	signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	ids = calloc(n, sizeof(*ids));
	if (signals < 0 || !ids)
		err(1, "signalfd");
	memset(ids, -1, n * sizeof(*ids));
}

/* What the C library's functions of these names do for a plain signal. */
static void posix_rearm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++) {
		struct itimerspec its = {
			.it_value = to_timespec(timers[i].due),
			.it_interval = to_timespec(timers[i].period),
		};

		if (syscall(SYS_timer_settime, ids[i], TIMER_ABSTIME, &its, NULL))
			err(1, "timer_settime");
	}
	syscalls += n;
}

static void posix_arm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++) {
		struct sigevent event = {
			.sigev_notify = SIGEV_SIGNAL,
			.sigev_signo = SIGRTMIN,
			.sigev_value.sival_int = i,
		};

		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &ids[i]))
			err(1, "timer_create");
		posix_rearm(i, 1);
	}
	syscalls += n;
}

static void posix_cancel(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++)
		if (syscall(SYS_timer_delete, ids[i]))
			err(1, "timer_delete");
	syscalls += n;
}

static long posix_deliver(__s64 until)
{
	static struct signalfd_siginfo infos[BATCH];
	struct pollfd fd = { .fd = signals, .events = POLLIN };
	long taken = 0, i, times;
	ssize_t got;

	syscalls++;
	if (poll(&fd, 1, ms_until(until)) < 0)
		err(1, "poll");
	if (!fd.revents)
		return 0;
	syscalls++;
	got = read(signals, infos, sizeof(infos));
	if (got < 0)
		err(1, "signalfd");
	for (i = 0; i < got / (ssize_t)sizeof(infos[0]); i++) {
		times = 1 + infos[i].ssi_overrun;
		taken += times;
		while (times--)
			fired(infos[i].ssi_int);
	}
	return taken;
}

/* A signal of a timer that has ended may still be queued. */
static void posix_close(void)
{
	static struct signalfd_siginfo infos[BATCH];

	while (read(signals, infos, sizeof(infos)) > 0)
		;
	close(signals);
	free(ids);
}

const struct rival posix = {
	.name = "posix",
	.max = 100000,
	.open = posix_open,
	.arm = posix_arm,
	.rearm = posix_rearm,
	.cancel = posix_cancel,
	.deliver = posix_deliver,
	.close = posix_close,
};
