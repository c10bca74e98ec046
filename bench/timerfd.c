// SPDX-License-Identifier: GPL-2.0
/* A timerfd for each timer, all of them in one epoll. */
#include "bench.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int epoll, *fds;

static void timerfd_open(long n)
{
	struct rlimit limit = { n + 100, n + 100 };
	int fd;

	write_number("/proc/sys/fs/nr_open", 4194304);
	write_number("/proc/sys/fs/file-max", 4194304);
	write_number("/proc/sys/fs/epoll/max_user_watches", 4194304);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "RLIMIT_NOFILE");
	epoll = epoll_create1(EPOLL_CLOEXEC);
	fds = calloc(n, sizeof(*fds));
	if (epoll < 0 || !fds)
		err(1, "epoll");
	memset(fds, -1, n * sizeof(*fds));
	/* the table of files is large already */
	fd = fcntl(epoll, F_DUPFD, n + 50);
	if (fd < 0)
		err(1, "F_DUPFD");
	close(fd);
}

static void set(long i)
{
	struct itimerspec its = {
		.it_value = to_timespec(timers[i].due),
		.it_interval = to_timespec(timers[i].period),
	};

	if (timerfd_settime(fds[i], TFD_TIMER_ABSTIME, &its, NULL))
		err(1, "timerfd_settime");
}

static void timerfd_arm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };

		fds[i] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (fds[i] < 0)
			err(1, "timerfd_create");
		set(i);
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event))
			err(1, "epoll_ctl");
	}
}

static void timerfd_rearm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++)
		set(i);
}

/* The last close of a file takes it out of the epoll as well. */
static void timerfd_cancel(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++)
		if (close(fds[i]))
			err(1, "close");
}

static long timerfd_deliver(__s64 until)
{
	static struct epoll_event events[BATCH];
	long taken = 0;
	int n, i;

	n = epoll_wait(epoll, events, BATCH, ms_until(until));
	if (n < 0)
		err(1, "epoll_wait");
	for (i = 0; i < n; i++) {
		long timer = events[i].data.u64;
		__u64 times;

		if (read(fds[timer], &times, sizeof(times)) != sizeof(times))
			err(1, "read");
		taken += times;
		while (times--)
			fired(timer);
	}
	return taken;
}

static void timerfd_close(void)
{
	close(epoll);
	free(fds);
}

const struct rival timerfd = {
	.name = "timerfd",
	.max = 1000000,
	.open = timerfd_open,
	.arm = timerfd_arm,
	.rearm = timerfd_rearm,
	.cancel = timerfd_cancel,
	.deliver = timerfd_deliver,
	.close = timerfd_close,
};
