// SPDX-License-Identifier: GPL-2.0
/*
 * IORING_OP_TIMEOUT of io_uring, many in one system call, on a ring of one
 * thread that does its work when it is asked for completions (DEFER_TASKRUN).
 * What succeeds says nothing (CQE_SKIP_SUCCESS), and the completions have as
 * much room as there can be.
 *
 * A timeout that is moved or removed is looked for in a list, oldest first: here
 * that is done in the order of the list, which is the best case.
 */
#include "bench.h"

#include <errno.h>
#include <liburing.h>

static struct io_uring ring;
static struct __kernel_timespec times[BATCH];
static long in_batch;

/* user_data of what is no timeout: it completes only if it failed */
#define NO_TIMER	(~0ULL)

/* Ended by a removal: not counted as fired. */
static long ended;

static void uring_open(long n)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |
			 IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		.cq_entries = n < 2 * BATCH ? 2 * BATCH : n,
	};
	int ret = io_uring_queue_init_params(BATCH, &ring, &params);

	if (ret)
		errx(1, "io_uring: %s", strerror(-ret));
}

static long take_completions(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, count = 0;
	long taken = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		count++;
		if (cqe->user_data == NO_TIMER) {
			/* to be removed, and it has fired meanwhile? */
			if (cqe->res != -ENOENT && cqe->res != -EALREADY)
				errx(1, "io_uring: %s", strerror(-cqe->res));
			ended++;
		} else if (cqe->res == -ETIME) {
			taken++;
			fired(cqe->user_data);
		} else if (cqe->res == -ECANCELED) {
			ended++;
		} else {
			errx(1, "timeout: %s", strerror(-cqe->res));
		}
	}
	io_uring_cq_advance(&ring, count);
	return taken;
}

static void submit(void)
{
	int ret;

	syscalls++;
	ret = io_uring_submit(&ring);
	if (ret != in_batch)
		errx(1, "io_uring_submit: %d of %ld", ret, in_batch);
	in_batch = 0;
}

static struct io_uring_sqe *next_sqe(void)
{
	in_batch++;
	return io_uring_get_sqe(&ring);
}

static struct __kernel_timespec *next_time(long timer)
{
	struct __kernel_timespec *ts = &times[in_batch - 1];

	ts->tv_sec = timers[timer].due / SEC;
	ts->tv_nsec = timers[timer].due % SEC;
	return ts;
}

static void start(long i)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_timeout(sqe, next_time(i), 0, IORING_TIMEOUT_ABS);
	io_uring_sqe_set_data64(sqe, i);
	if (in_batch == BATCH)
		submit();
}

static void uring_arm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++)
		start(i);
	if (in_batch)
		submit();
}

static void uring_rearm(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++) {
		struct io_uring_sqe *sqe = next_sqe();

		io_uring_prep_timeout_update(sqe, next_time(i), i,
					     IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data64(sqe, NO_TIMER);
		io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
		if (in_batch == BATCH)
			submit();
	}
	if (in_batch)
		submit();
}

static void uring_cancel(long first, long n)
{
	long i;

	ended = 0;
	for (i = first; i < first + n; i++) {
		struct io_uring_sqe *sqe = next_sqe();

		io_uring_prep_timeout_remove(sqe, i, 0);
		io_uring_sqe_set_data64(sqe, NO_TIMER);
		io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
		if (in_batch == BATCH) {
			submit();
			io_uring_get_events(&ring);
			syscalls++;
			take_completions();
		}
	}
	if (in_batch)
		submit();
	while (ended < n) {
		io_uring_get_events(&ring);
		syscalls++;
		take_completions();
	}
}

static long uring_deliver(__s64 until)
{
	struct __kernel_timespec ts;
	struct io_uring_cqe *cqe, *last;
	unsigned int head;
	__s64 ns = until - now();
	long taken;
	int ret;

	if (ns < 0)
		ns = 0;
	ts.tv_sec = ns / SEC;
	ts.tv_nsec = ns % SEC;
	syscalls++;
	ret = io_uring_wait_cqe_timeout(&ring, &last, &ts);
	if (ret == -ETIME)
		return 0;
	if (ret)
		errx(1, "io_uring_wait_cqe: %s", strerror(-ret));
	/* those that repeat are started for the next time, in one batch */
	io_uring_for_each_cqe(&ring, head, cqe) {
		long i = cqe->user_data;

		if (!timers[i].period || cqe->res != -ETIME)
			continue;
		timers[i].due += timers[i].period;
		start(i);
		timers[i].due -= timers[i].period;
	}
	taken = take_completions();
	if (in_batch)
		submit();
	return taken;
}

/* All timeouts that are left are ended by a single request. */
static void uring_close(void)
{
	struct io_uring_sqe *sqe = next_sqe();

	io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY |
			     IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data64(sqe, NO_TIMER);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
	submit();
	io_uring_queue_exit(&ring);
}

const struct rival uring = {
	.name = "uring",
	.max = 1000000,
	.open = uring_open,
	.arm = uring_arm,
	.rearm = uring_rearm,
	.cancel = uring_cancel,
	.deliver = uring_deliver,
	.close = uring_close,
	.close_ends_all = true,
};
