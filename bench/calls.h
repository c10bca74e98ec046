/* SPDX-License-Identifier: GPL-2.0 */
/* What the linker calls the functions that calls.c takes the place of. */
#ifndef SPOTTIMER_BENCH_CALLS_H
#define SPOTTIMER_BENCH_CALLS_H

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

ssize_t __real_read(int fd, void *buf, size_t n);
int __real_close(int fd);
int __real_ioctl(int fd, unsigned long cmd, void *arg);
int __real_epoll_wait(int fd, struct epoll_event *events, int n, int ms);
int __real_epoll_ctl(int fd, int op, int file, struct epoll_event *event);
int __real_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *its,
			   struct itimerspec *old);

#endif /* SPOTTIMER_BENCH_CALLS_H */
