// SPDX-License-Identifier: GPL-2.0
/*
 * Taking records through io_uring, by the ways in which it can come to read: at
 * submission, when poll says that there is something, from a worker thread,
 * from the thread that polls for submissions.
 */
#include "spottimer_test.h"

#include <liburing.h>

#define SIZE	sizeof(struct spottimer_record)

/* newer than the library */
#define OP_READ_MULTISHOT	49

enum {
	READS = 32,		/* that wait at once */
	GROUP = 7,		/* of provided buffers */
};

struct uring {
	int fd;
	struct io_uring ring;
	unsigned int sqe_flags;
};

/* What a completion said. */
struct done {
	__u64 id;
	int res;
	unsigned int flags;
};

static struct io_uring_sqe *uring_sqe(struct uring *u, __u64 id)
{
	static struct io_uring_sqe lost;
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	/* if the queue is full, the test will wait in vain */
	if (!sqe)
		sqe = &lost;
	io_uring_prep_nop(sqe);
	sqe->user_data = id;
	return sqe;
}

/*
 * For what io_uring_prep_...() has filled in, and so cleared. If another thread
 * takes submissions, there may be more of them than this one.
 */
static bool uring_submit(struct uring *u, struct io_uring_sqe *sqe, __u64 id)
{
	sqe->user_data = id;
	return io_uring_submit(&u->ring) > 0;
}

static bool uring_read(struct uring *u, __u64 id, void *buf, unsigned int len)
{
	struct io_uring_sqe *sqe = uring_sqe(u, id);

	io_uring_prep_read(sqe, u->fd, buf, len, -1);
	sqe->flags |= u->sqe_flags;
	return uring_submit(u, sqe, id);
}

static bool uring_cancel(struct uring *u, __u64 id, __u64 target)
{
	struct io_uring_sqe *sqe = uring_sqe(u, id);

	io_uring_prep_cancel64(sqe, target, 0);
	return uring_submit(u, sqe, id);
}

static bool uring_poll(struct uring *u, __u64 id, bool multishot)
{
	struct io_uring_sqe *sqe = uring_sqe(u, id);

	if (multishot)
		io_uring_prep_poll_multishot(sqe, u->fd, POLLIN);
	else
		io_uring_prep_poll_add(sqe, u->fd, POLLIN);
	return uring_submit(u, sqe, id);
}

/* The next completion within @timeout ms. */
static bool uring_done_within(struct uring *u, struct done *done, int timeout)
{
	struct __kernel_timespec ts = {
		.tv_sec = timeout / 1000,
		.tv_nsec = timeout % 1000 * MSEC,
	};
	struct io_uring_cqe *cqe;

	if (io_uring_wait_cqe_timeout(&u->ring, &cqe, &ts))
		return false;
	done->id = cqe->user_data;
	done->res = cqe->res;
	done->flags = cqe->flags;
	io_uring_cqe_seen(&u->ring, cqe);
	return true;
}

static bool uring_done(struct uring *u, struct done *done)
{
	return uring_done_within(u, done, PATIENCE);
}

static bool uring_quiet(struct uring *u)
{
	struct done done;

	return !uring_done_within(u, &done, A_WHILE);
}

/* A read that does not wait, of a file in whatever mode. */
static int take_now(int fd, struct spottimer_record *rec)
{
	struct iovec iov = { rec, SIZE };

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT) == SIZE ? 0 : -errno;
}

static int uring_open(struct uring *u, unsigned int setup)
{
	struct io_uring_params params = {
		.flags = setup,
		.sq_thread_idle = 20,
	};

	return io_uring_queue_init_params(2 * READS, &u->ring, &params);
}

/*
 * What a read takes is a handler of the thread that submitted it or, where some
 * other thread reads on its behalf, of its process.
 */
FIXTURE(uring) {
	struct uring u;
	bool has_multishot;
};

FIXTURE_VARIANT(uring) {
	int file;
	unsigned int setup;
	unsigned int sqe;
};

FIXTURE_VARIANT_ADD(uring, blocking) {
	.file = 0,
};

FIXTURE_VARIANT_ADD(uring, non_blocking) {
	.file = O_NONBLOCK,
};

FIXTURE_VARIANT_ADD(uring, worker) {
	.sqe = IOSQE_ASYNC,
};

FIXTURE_VARIANT_ADD(uring, sqpoll) {
	.setup = IORING_SETUP_SQPOLL,
};

FIXTURE_VARIANT_ADD(uring, deferred) {
	.setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_SETUP(uring)
{
	struct io_uring_probe *probe = io_uring_get_probe();

	if (!probe)
		SKIP(return, "this kernel has no io_uring");
	self->has_multishot = probe->last_op >= OP_READ_MULTISHOT;
	io_uring_free_probe(probe);

	self->u.fd = spot_open(variant->file);
	ASSERT_LE(0, self->u.fd);
	self->u.sqe_flags = variant->sqe;
	ASSERT_EQ(0, uring_open(&self->u, variant->setup));
}

FIXTURE_TEARDOWN(uring)
{
	io_uring_queue_exit(&self->u.ring);
	close(self->u.fd);
}

/*
 * F1: read
 */

TEST_F(uring, f1_uring_read_waits_for_its_tick)
{
	struct spottimer_record rec;
	struct done done;
	__u64 generation;
	__s64 begin;

	ASSERT_TRUE(uring_read(&self->u, 5, &rec, SIZE));
	EXPECT_TRUE(uring_quiet(&self->u));
	begin = now();
	generation = arm_once(self->u.fd, 1, 20 * MSEC, 0);
	ASSERT_NE(0, generation);
	ASSERT_TRUE(uring_done(&self->u, &done));
	EXPECT_LE(begin + 20 * MSEC, now());
	EXPECT_EQ(5, done.id);
	ASSERT_EQ(SIZE, done.res);
	EXPECT_TICK(rec, 1, generation, 1, 1);
	EXPECT_TRUE(uring_quiet(&self->u));
}

TEST_F(uring, f1_uring_read_returns_what_is_ready_and_fits)
{
	struct spottimer_record rec[8];
	struct done done;

	ASSERT_TRUE(make_ready(self->u.fd, 5));
	/* room for three and a half */
	ASSERT_TRUE(uring_read(&self->u, 1, rec, 3 * SIZE + 32));
	ASSERT_TRUE(uring_done(&self->u, &done));
	ASSERT_EQ(3 * SIZE, done.res);
	ASSERT_TRUE(uring_read(&self->u, 2, rec + 3, 5 * SIZE));
	ASSERT_TRUE(uring_done(&self->u, &done));
	ASSERT_EQ(2 * SIZE, done.res);
	EXPECT_EQ(31, keys_of(rec, 5));
	EXPECT_FALSE(readable(self->u.fd));
}

TEST_F(uring, f1_f3_uring_each_of_many_reads_gets_a_record_of_its_own)
{
	struct spottimer_record rec[READS + 1];
	struct done done;
	bool seen[READS + 1] = { false };
	int i, last;

	for (i = 0; i < READS + 1; i++)
		ASSERT_TRUE(uring_read(&self->u, i, &rec[i], SIZE));
	for (i = 0; i < READS; i++)
		ASSERT_NE(0, arm_once(self->u.fd, i, i % 5 * MSEC, 0));
	for (i = 0; i < READS; i++) {
		ASSERT_TRUE(uring_done(&self->u, &done));
		ASSERT_EQ(SIZE, done.res);
		ASSERT_GT(READS + 1, done.id);
		ASSERT_FALSE(seen[done.id]);
		seen[done.id] = true;
	}
	/* there was one read too many, which waits on */
	for (last = 0; seen[last]; last++)
		;
	EXPECT_TRUE(uring_quiet(&self->u));
	EXPECT_FALSE(readable(self->u.fd));
	ASSERT_NE(0, arm_once(self->u.fd, READS, 0, 0));
	ASSERT_TRUE(uring_done(&self->u, &done));
	EXPECT_EQ(last, done.id);
	ASSERT_EQ(SIZE, done.res);
	EXPECT_EQ(READS, rec[last].key);
	EXPECT_EQ((1ULL << (READS + 1)) - 1, keys_of(rec, READS + 1));
}

TEST_F(uring, f1_uring_read_into_a_short_buffer)
{
	static const unsigned int size[] = { 0, 1, SIZE - 1 };
	struct spottimer_record rec;
	struct done done;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_LEN(size); i++) {
		/* with nothing to read, and with something */
		if (i == ARRAY_LEN(size))
			ASSERT_TRUE(make_ready(self->u.fd, 1));
		ASSERT_TRUE(uring_read(&self->u, i, &rec,
				       size[i % ARRAY_LEN(size)]));
		ASSERT_TRUE(uring_done(&self->u, &done));
		EXPECT_EQ(-EINVAL, done.res);
	}
	ASSERT_EQ(0, take(self->u.fd, &rec));
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F(uring, f1_uring_read_may_ask_not_to_wait)
{
	struct spottimer_record rec;
	struct io_uring_sqe *sqe;
	struct done done;
	int i;

	for (i = 0; i < 2; i++) {
		if (i)
			ASSERT_TRUE(make_ready(self->u.fd, 1));
		sqe = uring_sqe(&self->u, i);
		io_uring_prep_read(sqe, self->u.fd, &rec, SIZE, -1);
		sqe->rw_flags = RWF_NOWAIT;
		sqe->flags |= variant->sqe;
		ASSERT_TRUE(uring_submit(&self->u, sqe, i));
		ASSERT_TRUE(uring_done(&self->u, &done));
		EXPECT_EQ(i ? (int)SIZE : -EAGAIN, done.res);
	}
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F(uring, f1_uring_readv_fills_its_buffers_one_after_the_other)
{
	struct spottimer_record rec[3];
	struct iovec iov[3] = {
		{ &rec[0], 24 },
		{ (char *)&rec[0] + 24, SIZE - 24 },
		{ &rec[1], 2 * SIZE },
	};
	struct io_uring_sqe *sqe;
	struct done done;
	int n;

	/* two buffers of less than a record, then all, waiting for it */
	for (n = 1; n <= 3; n += 2) {
		sqe = uring_sqe(&self->u, n);
		io_uring_prep_readv(sqe, self->u.fd, iov, n, -1);
		sqe->flags |= variant->sqe;
		ASSERT_TRUE(uring_submit(&self->u, sqe, n));
		if (n == 3)
			ASSERT_NE(0, arm_once(self->u.fd, 0, 5 * MSEC, 0));
		ASSERT_TRUE(uring_done(&self->u, &done));
		EXPECT_EQ(n == 3 ? (int)SIZE : -EINVAL, done.res);
	}
	EXPECT_EQ(0, rec[0].key);
	EXPECT_EQ(1, rec[0].delivery_index);

	ASSERT_TRUE(make_ready(self->u.fd, 3));
	sqe = uring_sqe(&self->u, 4);
	io_uring_prep_readv(sqe, self->u.fd, iov, 3, -1);
	sqe->flags |= variant->sqe;
	ASSERT_TRUE(uring_submit(&self->u, sqe, 4));
	ASSERT_TRUE(uring_done(&self->u, &done));
	ASSERT_EQ(3 * SIZE, done.res);
	EXPECT_EQ(7, keys_of(rec, 3));
}

TEST_F(uring, f1_uring_read_into_a_registered_buffer)
{
	struct spottimer_record rec[4];
	struct iovec iov = { rec, sizeof(rec) };
	struct io_uring_sqe *sqe;
	struct done done;
	int i;

	ASSERT_EQ(0, io_uring_register_buffers(&self->u.ring, &iov, 1));
	ASSERT_TRUE(make_ready(self->u.fd, 3));
	/* three that are there, and one that it has to wait for */
	for (i = 0; i < 2; i++) {
		sqe = uring_sqe(&self->u, i);
		io_uring_prep_read_fixed(sqe, self->u.fd, rec + 3 * i,
					 (i ? 1 : 3) * SIZE, -1, 0);
		sqe->flags |= variant->sqe;
		ASSERT_TRUE(uring_submit(&self->u, sqe, i));
		if (i)
			ASSERT_NE(0, arm_once(self->u.fd, 3, 5 * MSEC, 0));
		ASSERT_TRUE(uring_done(&self->u, &done));
		ASSERT_EQ((i ? 1 : 3) * SIZE, done.res);
	}
	EXPECT_EQ(15, keys_of(rec, 4));
}

TEST_F(uring, f2_uring_fault_loses_nothing)
{
	struct spottimer_record rec[2];
	char *border = map_border(PROT_NONE);
	struct done done;

	ASSERT_NE(NULL, border);
	ASSERT_TRUE(make_ready(self->u.fd, 2));
	ASSERT_TRUE(uring_read(&self->u, 1, border, SIZE));
	ASSERT_TRUE(uring_done(&self->u, &done));
	EXPECT_EQ(-EFAULT, done.res);
	/* the second lies beyond the border */
	ASSERT_TRUE(uring_read(&self->u, 2, border - SIZE, 2 * SIZE));
	ASSERT_TRUE(uring_done(&self->u, &done));
	ASSERT_EQ(SIZE, done.res);
	memcpy(rec, border - SIZE, SIZE);
	ASSERT_EQ(0, take(self->u.fd, rec + 1));
	EXPECT_EQ(3, keys_of(rec, 2));
	EXPECT_EQ(1, rec[1].delivery_index);
}

/*
 * Cancelled, and left behind
 */

TEST_F(uring, f1_uring_cancelled_read_takes_nothing)
{
	struct spottimer_record rec;
	struct done done[2];
	int i;

	ASSERT_TRUE(uring_read(&self->u, 0, &rec, SIZE));
	EXPECT_TRUE(uring_quiet(&self->u));
	ASSERT_TRUE(uring_cancel(&self->u, 1, 0));
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(uring_done(&self->u, &done[i]));
	i = done[0].id;
	EXPECT_EQ(1, done[0].id + done[1].id);
	EXPECT_EQ(-ECANCELED, done[i].res);
	EXPECT_EQ(0, done[!i].res);

	ASSERT_TRUE(make_ready(self->u.fd, 1));
	EXPECT_TRUE(uring_quiet(&self->u));
	ASSERT_EQ(0, take(self->u.fd, &rec));
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F_TIMEOUT(uring, f1_f3_uring_cancel_at_the_time_of_the_tick_loses_nothing,
	       120)
{
	struct spottimer_record rec;
	struct done done;
	__u64 generation;
	int i, k, res;

	for (i = 0; i < 140; i++) {
		memset(&rec, 0, SIZE);
		res = 0;
		ASSERT_TRUE(uring_read(&self->u, 1, &rec, SIZE));
		generation = arm_once(self->u.fd, i, i % 4 * MSEC / 2, 0);
		ASSERT_NE(0, generation);
		sleep_until(now() + i % 7 * MSEC / 3);
		ASSERT_TRUE(uring_cancel(&self->u, 2, 1));
		for (k = 0; k < 2; k++) {
			ASSERT_TRUE(uring_done(&self->u, &done));
			if (done.id == 1)
				res = done.res;
		}
		/* a worker that waits is interrupted */
		if (res != SIZE) {
			ASSERT_EQ(true, res == -ECANCELED || res == -EINTR);
			ASSERT_EQ(0, rec.generation);
			ASSERT_EQ(0, take(self->u.fd, &rec));
		}
		ASSERT_EQ(generation, rec.generation);
		ASSERT_FALSE(readable(self->u.fd));
	}
}

TEST_F(uring, f1_f3_uring_closed_with_reads_that_wait_loses_nothing)
{
	enum { N = 8 };
	/* the kernel may write there for as long as the ring has not gone */
	static struct spottimer_record rec[N], mine[N];
	unsigned int got, taken = 0, i;
	__s64 since = 0;

	for (i = 0; i < N; i++)
		ASSERT_TRUE(uring_read(&self->u, i, &rec[i], SIZE));
	io_uring_queue_exit(&self->u.ring);
	for (i = 0; i < N; i++)
		ASSERT_NE(0, arm_once(self->u.fd, i, 0, 0));

	/* that takes a moment, in which it may still get some */
	do {
		while (taken < N && !take_now(self->u.fd, &mine[taken]))
			taken++;
		for (got = taken, i = 0; i < N; i++)
			if (__atomic_load_n(&rec[i].generation,
					    __ATOMIC_ACQUIRE))
				mine[got++ % N] = rec[i];
	} while (got < N && look_again(&since));
	ASSERT_EQ(N, got);
	EXPECT_EQ((1 << N) - 1, keys_of(mine, N));
	EXPECT_EQ(-EAGAIN, take_now(self->u.fd, &mine[0]));

	/* for the teardown */
	ASSERT_EQ(0, uring_open(&self->u, 0));
}

TEST_F(uring, f1_h5_uring_reads_of_a_process_end_with_it)
{
	struct spottimer_record rec;
	int i, status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct uring u = {
			.fd = self->u.fd,
			.sqe_flags = variant->sqe,
		};

		if (uring_open(&u, variant->setup))
			_exit(1);
		for (i = 0; i < 8; i++)
			if (!uring_read(&u, i, &rec, SIZE))
				_exit(2);
		_exit(uring_quiet(&u) ? 0 : 3);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	/* the file is still open, and this is its only reader */
	for (i = 0; i < 8; i++) {
		ASSERT_NE(0, arm_once(self->u.fd, i, MSEC, 0));
		ASSERT_EQ(0, take(self->u.fd, &rec));
		EXPECT_EQ(i, rec.key);
	}
}

/*
 * F1: poll
 */

TEST_F(uring, f1_uring_poll_tells_once)
{
	struct spottimer_record rec[2];
	struct done done;
	int i;

	/* of what will come, and of what is there */
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(uring_poll(&self->u, i, false));
		if (!i) {
			EXPECT_TRUE(uring_quiet(&self->u));
			ASSERT_NE(0, arm_once(self->u.fd, 0, 10 * MSEC, 0));
		}
		ASSERT_TRUE(uring_done(&self->u, &done));
		EXPECT_EQ(i, done.id);
		EXPECT_EQ(POLLIN, done.res & POLLIN);
		EXPECT_EQ(0, done.flags & IORING_CQE_F_MORE);
	}
	/* it takes nothing, and says nothing of the next */
	ASSERT_NE(0, arm_once(self->u.fd, 1, 0, 0));
	ASSERT_TRUE(wait_state(self->u.fd, 1, 0, SPOTTIMER_READY));
	EXPECT_TRUE(uring_quiet(&self->u));
	ASSERT_EQ(2, take_all(self->u.fd, rec, 2));
	EXPECT_EQ(3, keys_of(rec, 2));
}

TEST_F(uring, f1_uring_multishot_poll_tells_of_each_tick)
{
	struct spottimer_record rec[2];
	struct done done;
	int i;

	ASSERT_TRUE(uring_poll(&self->u, 9, true));
	for (i = 0; i < 20; i++) {
		ASSERT_NE(0, arm_once(self->u.fd, i, i % 3 * MSEC, 0));
		ASSERT_TRUE(uring_done(&self->u, &done));
		EXPECT_EQ(9, done.id);
		ASSERT_EQ(POLLIN, done.res & POLLIN);
		ASSERT_EQ(IORING_CQE_F_MORE, done.flags & IORING_CQE_F_MORE);
		/* the next one, though this one may not have been read */
		if (i % 2) {
			ASSERT_EQ(2, read_records(self->u.fd, rec, 2));
			ASSERT_FALSE(readable(self->u.fd));
		}
	}
	EXPECT_TRUE(uring_quiet(&self->u));
	/* of a record that was withdrawn it has nothing to tell either */
	ASSERT_NE(0, arm_once(self->u.fd, 0, 5 * MSEC, 0));
	ASSERT_EQ(0, cancel(self->u.fd, 0, 0, 0).error);
	EXPECT_TRUE(uring_quiet(&self->u));
}

/*
 * Multishot read, into buffers that were provided. Since Linux 6.7.
 */

static bool uring_provide(struct uring *u, void *buf, int size, int n)
{
	struct io_uring_sqe *sqe = uring_sqe(u, 0);
	struct done done;

	io_uring_prep_provide_buffers(sqe, buf, size, n, GROUP, 0);
	return uring_submit(u, sqe, 1000) && uring_done(u, &done) &&
	       done.id == 1000 && done.res >= 0;
}

static bool uring_read_multishot(struct uring *u, __u64 id)
{
	struct io_uring_sqe *sqe = uring_sqe(u, id);

	io_uring_prep_rw(OP_READ_MULTISHOT, sqe, u->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT | u->sqe_flags;
	sqe->buf_group = GROUP;
	return uring_submit(u, sqe, id);
}

TEST_F(uring, f1_uring_multishot_read_takes_each_record_once)
{
	enum { N = 8 };
	static struct spottimer_record rec[N];
	struct spottimer_record last;
	unsigned int seen = 0, id;
	struct done done;
	int i;

	if (!self->has_multishot)
		SKIP(return, "this kernel has no multishot read");
	ASSERT_TRUE(uring_provide(&self->u, rec, SIZE, N));
	/* one is there already, the others come later */
	ASSERT_TRUE(make_ready(self->u.fd, 1));
	ASSERT_TRUE(uring_read_multishot(&self->u, 5));
	for (i = 0; i < N; i++) {
		if (i)
			ASSERT_NE(0, arm_once(self->u.fd, i, i % 3 * MSEC, 0));
		ASSERT_TRUE(uring_done(&self->u, &done));
		ASSERT_EQ(5, done.id);
		ASSERT_EQ(SIZE, done.res);
		ASSERT_EQ(IORING_CQE_F_MORE | IORING_CQE_F_BUFFER,
			  done.flags & (IORING_CQE_F_MORE |
					IORING_CQE_F_BUFFER));
		id = done.flags >> IORING_CQE_BUFFER_SHIFT;
		ASSERT_GT(N, id);
		ASSERT_EQ(0, seen & 1U << id);
		seen |= 1U << id;
		ASSERT_EQ(i, rec[id].key);
	}
	EXPECT_TRUE(uring_quiet(&self->u));
	EXPECT_FALSE(readable(self->u.fd));

	/* without a buffer it ends, and the record stays */
	ASSERT_NE(0, arm_once(self->u.fd, N, 0, 0));
	ASSERT_TRUE(uring_done(&self->u, &done));
	EXPECT_EQ(-ENOBUFS, done.res);
	EXPECT_EQ(0, done.flags & IORING_CQE_F_MORE);
	ASSERT_EQ(0, take(self->u.fd, &last));
	EXPECT_EQ(N, last.key);
	EXPECT_EQ(1, last.delivery_index);
}

TEST_F(uring, f1_uring_multishot_read_takes_several_records_at_once)
{
	static struct spottimer_record rec[4][3];
	struct spottimer_record all[10];
	unsigned int n = 0, id;
	struct done done;

	if (!self->has_multishot)
		SKIP(return, "this kernel has no multishot read");
	ASSERT_TRUE(uring_provide(&self->u, rec, sizeof(rec[0]), 4));
	ASSERT_TRUE(make_ready(self->u.fd, 10));
	ASSERT_TRUE(uring_read_multishot(&self->u, 5));
	while (n < 10) {
		ASSERT_TRUE(uring_done(&self->u, &done));
		ASSERT_LT(0, done.res);
		ASSERT_EQ(0, done.res % SIZE);
		ASSERT_GE(10 * SIZE, n * SIZE + done.res);
		id = done.flags >> IORING_CQE_BUFFER_SHIFT;
		ASSERT_GT(4, id);
		memcpy(all + n, rec[id], done.res);
		n += done.res / SIZE;
	}
	EXPECT_EQ((1 << 10) - 1, keys_of(all, 10));
	EXPECT_TRUE(uring_quiet(&self->u));
}

TEST_F(uring, f1_uring_multishot_read_into_short_buffers)
{
	static char buffer[4][SIZE - 1];
	struct spottimer_record rec;
	struct done done;

	if (!self->has_multishot)
		SKIP(return, "this kernel has no multishot read");
	ASSERT_TRUE(uring_provide(&self->u, buffer, sizeof(buffer[0]), 4));
	ASSERT_TRUE(make_ready(self->u.fd, 1));
	ASSERT_TRUE(uring_read_multishot(&self->u, 5));
	ASSERT_TRUE(uring_done(&self->u, &done));
	EXPECT_EQ(-EINVAL, done.res);
	EXPECT_EQ(0, done.flags & IORING_CQE_F_MORE);
	ASSERT_EQ(0, take(self->u.fd, &rec));
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F(uring, f1_uring_cancelled_multishot_read_takes_nothing)
{
	static struct spottimer_record rec[4];
	struct spottimer_record mine;
	struct done done[2];
	int i;

	if (!self->has_multishot)
		SKIP(return, "this kernel has no multishot read");
	ASSERT_TRUE(uring_provide(&self->u, rec, SIZE, 4));
	ASSERT_TRUE(uring_read_multishot(&self->u, 0));
	EXPECT_TRUE(uring_quiet(&self->u));
	ASSERT_TRUE(uring_cancel(&self->u, 1, 0));
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(uring_done(&self->u, &done[i]));
	i = done[0].id;
	EXPECT_EQ(1, done[0].id + done[1].id);
	EXPECT_EQ(-ECANCELED, done[i].res);
	EXPECT_EQ(0, done[!i].res);
	ASSERT_TRUE(make_ready(self->u.fd, 1));
	ASSERT_EQ(0, take(self->u.fd, &mine));
	EXPECT_EQ(0, rec[0].generation);
}

/*
 * F4, E4: what was taken by a read is a handler that runs
 */

TEST_F(uring, f4_uring_handler_runs_until_it_is_completed)
{
	struct spottimer_record rec;
	struct done done;
	__u64 generation;
	int i;

	generation = arm_every(self->u.fd, 1, MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_NE(0, generation);
	for (i = 1; i < 10; i++) {
		/* it is there, or the read waits for it */
		if (i % 2)
			ASSERT_TRUE(readable_for(self->u.fd, PATIENCE));
		ASSERT_TRUE(uring_read(&self->u, i, &rec, SIZE));
		ASSERT_TRUE(uring_done(&self->u, &done));
		ASSERT_EQ(SIZE, done.res);
		EXPECT_EQ(SPOTTIMER_REC_TICK | SPOTTIMER_REC_MANUAL,
			  rec.flags);
		EXPECT_EQ(i, rec.delivery_index);
		EXPECT_EQ(SPOTTIMER_RUNNING, query(self->u.fd, 1, 0).state);
		EXPECT_FALSE(readable_for(self->u.fd, 5));
		ASSERT_EQ(0, complete(self->u.fd, 1, generation, 0));
	}
}

TEST_F(uring, e4_case25_uring_handler_that_cancels_itself_does_not_wait)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	struct done done;
	__u64 generation;
	int status;
	pid_t pid;

	/* ready, so that it is read right where the read is begun */
	generation = arm_every(self->u.fd, 1, MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_TRUE(wait_state(self->u.fd, 1, generation, SPOTTIMER_READY));
	ASSERT_TRUE(uring_read(&self->u, 1, &rec, SIZE));
	ASSERT_TRUE(uring_done(&self->u, &done));
	ASSERT_EQ(SIZE, done.res);
	EXPECT_EQ(-EINPROGRESS, cancel(self->u.fd, 1, 0, 0).error);

	/* another process is not the handler, and waits */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		c = cancel(self->u.fd, 1, generation, 0);
		_exit(c.error || c.started != 1 || c.result != -EIO);
	}
	ASSERT_TRUE(wait_asleep(pid, SYS_ioctl));
	ASSERT_EQ(0, complete(self->u.fd, 1, generation, -EIO));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
