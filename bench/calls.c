// SPDX-License-Identifier: GPL-2.0
/*
 * System calls are counted where they are made: the linker puts these in place
 * of the C library's (--wrap), in libevent as well. What has no such function
 * counts for itself.
 */
#include "bench.h"
#include "calls.h"

long syscalls;

ssize_t __wrap_read(int fd, void *buf, size_t n)
{
	syscalls++;
	return __real_read(fd, buf, n);
}

int __wrap_close(int fd)
{
	syscalls++;
	return __real_close(fd);
}

int __wrap_ioctl(int fd, unsigned long cmd, void *arg)
{
	syscalls++;
	return __real_ioctl(fd, cmd, arg);
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	syscalls++;
	return __real_epoll_wait(fd, events, n, ms);
}

int __wrap_epoll_ctl(int fd, int op, int file, struct epoll_event *event)
{
	syscalls++;
	return __real_epoll_ctl(fd, op, file, event);
}

int __wrap_timerfd_create(int clock, int flags)
{
	syscalls++;
	return __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *its,
			   struct itimerspec *old)
{
	syscalls++;
	return __real_timerfd_settime(fd, flags, its, old);
}
