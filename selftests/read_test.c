// SPDX-License-Identifier: GPL-2.0
/*
 * Taking records: read, poll and their relatives, and what a file is to those
 * who share it.
 */
#include "spottimer_test.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SIZE	sizeof(struct spottimer_record)

static ssize_t errno_of(ssize_t ret)
{
	return ret < 0 ? -errno : ret;
}

/*
 * F1: read
 */

TEST_F(ctx, f1_without_records_a_non_blocking_read_says_so)
{
	struct spottimer_record rec;

	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));
}

TEST_F(ctx, f1_read_returns_as_many_records_as_fit)
{
	struct spottimer_record rec[20];
	__u64 keys;

	ASSERT_TRUE(make_ready(self->fd, 20));
	ASSERT_EQ(6, read_records(self->fd, rec, 6));
	/* room for seven and a half */
	ASSERT_EQ(7 * SIZE, errno_of(read(self->fd, rec + 6, 7 * SIZE + 32)));
	ASSERT_EQ(7, read_records(self->fd, rec + 13, 7));
	keys = keys_of(rec, 20);
	EXPECT_EQ((1 << 20) - 1, keys);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, f1_read_returns_as_many_records_as_there_are)
{
	struct spottimer_record rec[20];

	ASSERT_TRUE(make_ready(self->fd, 3));
	ASSERT_EQ(3, read_records(self->fd, rec, 20));
	EXPECT_EQ(7, keys_of(rec, 3));
}

TEST_F(ctx, f1_case34_a_buffer_too_short_for_one_record_takes_none)
{
	struct spottimer_record rec;
	static const size_t size[] = { 0, 1, 8, SIZE - 1 };
	unsigned int i;

	ASSERT_TRUE(make_ready(self->fd, 1));
	for (i = 0; i < ARRAY_LEN(size); i++)
		EXPECT_EQ(-EINVAL, errno_of(read(self->fd, &rec, size[i])));
	ASSERT_EQ(1, read_records(self->fd, &rec, 1));
	EXPECT_EQ(1, rec.delivery_index);
}

TEST_F(ctx, f1_a_blocking_read_with_a_short_buffer_does_not_wait)
{
	int fd = spot_open(0);
	char buffer[SIZE];

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EINVAL, errno_of(read(fd, buffer, SIZE - 1)));
	close(fd);
}

TEST_F(ctx, f1_readv_fills_its_buffers_one_after_the_other)
{
	struct spottimer_record rec[3];
	struct iovec iov[3] = {
		{ &rec[0], 24 },
		{ (char *)&rec[0] + 24, SIZE - 24 },
		{ &rec[1], 2 * SIZE },
	};

	ASSERT_TRUE(make_ready(self->fd, 3));
	ASSERT_EQ(3 * SIZE, errno_of(readv(self->fd, iov, 3)));
	EXPECT_EQ(7, keys_of(rec, 3));
}

TEST_F(ctx, f1_case34_readv_into_short_buffers)
{
	struct spottimer_record rec;
	struct iovec iov[2] = {
		{ &rec, 32 },
		{ (char *)&rec + 32, 31 },
	};

	ASSERT_TRUE(make_ready(self->fd, 1));
	EXPECT_EQ(-EINVAL, errno_of(readv(self->fd, iov, 2)));
	iov[1].iov_len = 32;
	ASSERT_EQ(SIZE, errno_of(readv(self->fd, iov, 2)));
	EXPECT_EQ(0, rec.key);
	EXPECT_EQ(1, rec.delivery_index);
}

/*
 * F2: faults
 */

TEST_F(ctx, f2_a_fault_at_the_first_record_takes_none)
{
	struct spottimer_record rec[2];
	char *border = map_border(PROT_NONE);

	ASSERT_NE(NULL, border);
	ASSERT_TRUE(make_ready(self->fd, 2));
	EXPECT_EQ(-EFAULT, errno_of(read(self->fd, border, SIZE)));
	EXPECT_EQ(-EFAULT, errno_of(read(self->fd, border, 2 * SIZE)));
	EXPECT_EQ(-EFAULT, errno_of(read(self->fd, border - 24, SIZE)));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(2, read_records(self->fd, rec, 2));
	EXPECT_EQ(3, keys_of(rec, 2));
	EXPECT_EQ(1, rec[0].delivery_index);
	EXPECT_EQ(1, rec[1].delivery_index);
}

TEST_F(ctx, f2_case34_a_fault_at_a_later_record_returns_those_before_it)
{
	struct spottimer_record rec[12];
	char *border = map_border(PROT_NONE);

	ASSERT_NE(NULL, border);
	ASSERT_TRUE(make_ready(self->fd, 8));
	/* the second lies beyond the border */
	ASSERT_EQ(SIZE, errno_of(read(self->fd, border - SIZE, 8 * SIZE)));
	memcpy(rec, border - SIZE, SIZE);
	EXPECT_TRUE(readable(self->fd));
	/* the fourth lies across it */
	ASSERT_EQ(3 * SIZE, errno_of(read(self->fd, border - 3 * SIZE - 40,
					  8 * SIZE)));
	memcpy(rec + 1, border - 3 * SIZE - 40, 3 * SIZE);
	ASSERT_EQ(4, read_records(self->fd, rec + 4, 8));
	EXPECT_EQ(255, keys_of(rec, 8));
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, f2_a_buffer_that_cannot_be_written)
{
	struct spottimer_record rec[3];
	char *border = map_border(PROT_READ);
	struct iovec iov[2] = { { &rec[0], SIZE }, { border, 2 * SIZE } };

	ASSERT_NE(NULL, border);
	ASSERT_TRUE(make_ready(self->fd, 3));
	EXPECT_EQ(-EFAULT, errno_of(read(self->fd, border, 3 * SIZE)));
	ASSERT_EQ(SIZE, errno_of(readv(self->fd, iov, 2)));
	ASSERT_EQ(2, read_records(self->fd, rec + 1, 2));
	EXPECT_EQ(7, keys_of(rec, 3));
}

TEST_F(ctx, f2_after_a_fault_a_timer_goes_on_as_if_not_read)
{
	struct spottimer_register reg = timer_every(1, now(), 3 * MSEC);
	struct spottimer_record rec;
	char *border = map_border(PROT_NONE);
	__u64 last = 0;
	int i;

	ASSERT_NE(NULL, border);
	ASSERT_EQ(0, spot_register(self->fd, &reg));
	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(readable_for(self->fd, PATIENCE));
		ASSERT_EQ(-EFAULT, errno_of(read(self->fd, border, SIZE)));
		ASSERT_EQ(i, query(self->fd, 1, 0).started);
		ASSERT_EQ(1, read_records(self->fd, &rec, 1));
		EXPECT_EQ(i + 1, rec.delivery_index);
		EXPECT_EQ(rec.scheduled_index - last - 1, rec.skipped_ticks);
		last = rec.scheduled_index;
	}
}

TEST_F(ctx, f2_after_a_fault_a_handler_does_not_run)
{
	struct spottimer_record rec;
	char *border = map_border(PROT_NONE);
	__u64 generation;

	ASSERT_NE(NULL, border);
	generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_TRUE(readable_for(self->fd, PATIENCE));
	ASSERT_EQ(-EFAULT, errno_of(read(self->fd, border, SIZE)));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation, 0));
	EXPECT_EQ(SPOTTIMER_READY, query(self->fd, 1, 0).state);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
}

TEST_F(ctx, f2_a_fault_keeps_an_end_record)
{
	struct spottimer_record rec;
	char *border = map_border(PROT_NONE);
	__u64 generation;

	ASSERT_NE(NULL, border);
	generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(-EINPROGRESS,
		  cancel(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT).error);
	EXPECT_EQ(0, complete(self->fd, 1, 0, -EIO));
	EXPECT_EQ(-EFAULT, errno_of(read(self->fd, border, SIZE)));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(SPOTTIMER_REC_END, rec.flags);
	EXPECT_EQ(generation, rec.generation);
	EXPECT_EQ(-EIO, rec.result);
}

/*
 * F1, F3: blocking
 */

struct reader {
	pthread_t thread;
	int fd;
	pid_t tid;
	ssize_t ret;
	struct spottimer_record rec;
	bool done;
};

static void *reader_run(void *arg)
{
	struct reader *r = arg;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	r->ret = errno_of(read(r->fd, &r->rec, SIZE));
	__atomic_store_n(&r->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Start a thread and wait until it waits in read(). */
static bool reader_start(struct reader *r, int fd)
{
	__s64 since = 0;

	memset(r, 0, sizeof(*r));
	r->fd = fd;
	if (pthread_create(&r->thread, NULL, reader_run, r))
		return false;
	while (!__atomic_load_n(&r->tid, __ATOMIC_ACQUIRE))
		if (!look_again(&since))
			return false;
	return wait_asleep(r->tid, SYS_read);
}

static bool reader_done(struct reader *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);
}

FIXTURE(blocking) {
	int fd;
};

FIXTURE_SETUP(blocking)
{
	self->fd = spot_open(0);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, catch_signal(SIGUSR1));
}

FIXTURE_TEARDOWN(blocking)
{
	close(self->fd);
}

TEST_F(blocking, f1_a_tick_wakes_a_reader)
{
	struct reader r;
	__u64 generation;
	__s64 begin;

	ASSERT_TRUE(reader_start(&r, self->fd));
	begin = now();
	generation = arm_once(self->fd, 1, 20 * MSEC, 0);
	ASSERT_NE(0, generation);
	pthread_join(r.thread, NULL);
	ASSERT_EQ(SIZE, r.ret);
	EXPECT_LE(begin + 20 * MSEC, now());
	EXPECT_TICK(r.rec, 1, generation, 1, 1);
}

TEST_F(blocking, f1_a_completion_wakes_a_reader)
{
	struct spottimer_record rec;
	struct reader r;
	__u64 generation;

	generation = arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_NE(0, generation);
	ASSERT_EQ(1, read_records(self->fd, &rec, 1));
	ASSERT_TRUE(reader_start(&r, self->fd));
	ASSERT_EQ(0, complete(self->fd, 1, generation, 0));
	pthread_join(r.thread, NULL);
	ASSERT_EQ(SIZE, r.ret);
	EXPECT_EQ(2, r.rec.delivery_index);
}

TEST_F(blocking, f1_an_end_record_wakes_a_reader)
{
	struct spottimer_record rec;
	struct reader r;

	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(1, read_records(self->fd, &rec, 1));
	ASSERT_TRUE(reader_start(&r, self->fd));
	EXPECT_EQ(-EINPROGRESS,
		  cancel(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT).error);
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	pthread_join(r.thread, NULL);
	ASSERT_EQ(SIZE, r.ret);
	EXPECT_EQ(SPOTTIMER_REC_END, r.rec.flags);
}

TEST_F(blocking, f1_the_end_of_a_lease_wakes_a_reader)
{
	struct reader r;

	ASSERT_TRUE(reader_start(&r, self->fd));
	ASSERT_EQ(0, lease_grant(self->fd, 9, 1, 20 * MSEC));
	pthread_join(r.thread, NULL);
	ASSERT_EQ(SIZE, r.ret);
	EXPECT_EQ(SPOTTIMER_REC_LEASE, r.rec.flags);
}

TEST_F(blocking, f1_a_signal_wakes_a_reader)
{
	struct reader r;

	ASSERT_TRUE(reader_start(&r, self->fd));
	ASSERT_EQ(0, pthread_kill(r.thread, SIGUSR1));
	pthread_join(r.thread, NULL);
	EXPECT_EQ(-EINTR, r.ret);
}

TEST_F(blocking, f1_case33_the_reader_of_a_withdrawn_record_waits_on)
{
	struct reader r;
	int i;

	ASSERT_TRUE(reader_start(&r, self->fd));
	/* it may be woken for each of these, and even get one */
	for (i = 0; i < 500 && !reader_done(&r); i++) {
		ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
		if (i % 2)
			sched_yield();
		ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	}
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	pthread_join(r.thread, NULL);
	/* but never nothing */
	ASSERT_EQ(SIZE, r.ret);
	EXPECT_EQ(1, r.rec.key);
	EXPECT_EQ(1, r.rec.delivery_index);
}

TEST_F(blocking, f1_non_blocking_is_a_mode_of_the_file)
{
	struct spottimer_record rec;
	int flags = fcntl(self->fd, F_GETFL);

	ASSERT_LE(0, flags);
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, flags | O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, read_records(self->fd, &rec, 1));
	ASSERT_EQ(0, fcntl(self->fd, F_SETFL, flags));
	ASSERT_NE(0, arm_once(self->fd, 1, 10 * MSEC, 0));
	EXPECT_EQ(1, read_records(self->fd, &rec, 1));
}

TEST_F(blocking, f1_preadv2_may_ask_not_to_wait)
{
	struct spottimer_record rec;
	struct iovec iov = { &rec, SIZE };

	EXPECT_EQ(-EAGAIN, errno_of(preadv2(self->fd, &iov, 1, -1,
					    RWF_NOWAIT)));
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	ASSERT_TRUE(readable_for(self->fd, PATIENCE));
	EXPECT_EQ(SIZE, errno_of(preadv2(self->fd, &iov, 1, -1, RWF_NOWAIT)));
	EXPECT_EQ(1, rec.key);
}

TEST_F(blocking, f3_every_reader_is_woken_that_there_is_a_record_for)
{
	enum { N = 16 };
	struct spottimer_register reg[N];
	struct spottimer_record rec[N];
	struct reader r[N + 1];
	__s64 since = 0, first;
	int i, done = 0;

	for (i = 0; i < N + 1; i++)
		ASSERT_TRUE(reader_start(&r[i], self->fd));
	/* on one wheel tick, with one wake-up to begin with */
	first = now() + 10 * MSEC;
	for (i = 0; i < N; i++) {
		reg[i] = timer_once(i, first);
		reg[i].flags = SPOTTIMER_REG_ABSTIME;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, N,
				sizeof(reg[0])));
	while (done < N) {
		for (done = i = 0; i < N + 1; i++)
			done += reader_done(&r[i]);
		ASSERT_TRUE(done == N || look_again(&since));
	}
	/* the last one waits on */
	for (done = i = 0; i < N + 1; i++)
		if (reader_done(&r[i]))
			rec[done++] = r[i].rec;
		else
			EXPECT_TRUE(wait_asleep(r[i].tid, SYS_read));
	ASSERT_EQ(N, done);
	EXPECT_EQ((1 << N) - 1, keys_of(rec, N));
	ASSERT_NE(0, arm_once(self->fd, 99, 0, 0));
	for (i = 0; i < N + 1; i++) {
		pthread_join(r[i].thread, NULL);
		EXPECT_EQ(SIZE, r[i].ret);
	}
}

TEST_F(blocking, f3_a_signal_does_not_swallow_the_wake_up_of_another_reader)
{
	struct reader a, b;
	int i;

	for (i = 0; i < 60; i++) {
		ASSERT_TRUE(reader_start(&a, self->fd));
		ASSERT_TRUE(reader_start(&b, self->fd));
		/* the tick and the signal meet at the one that is woken */
		ASSERT_NE(0, arm_once(self->fd, 1, MSEC, 0));
		sleep_until(now() + (i % 10) * MSEC / 5);
		ASSERT_EQ(0, pthread_kill(a.thread, SIGUSR1));
		pthread_join(a.thread, NULL);
		/* if that one got the record, the other gets the next */
		if (a.ret != -EINTR) {
			ASSERT_EQ(SIZE, a.ret);
			ASSERT_NE(0, arm_once(self->fd, 2, 0, 0));
		}
		pthread_join(b.thread, NULL);
		ASSERT_EQ(SIZE, b.ret);
	}
}

/*
 * F3: each record goes to one of many. What they share is in shared memory.
 */

enum {
	CROWD_TIMERS = 3000,
	CROWD_PROCESSES = 8,
	CROWD_THREADS = 8,
	CROWD_BATCH = 100,
};

struct crowd {
	int fd;
	unsigned int total;
	unsigned int wrong;
	unsigned int members;
	pid_t tid[CROWD_PROCESSES + CROWD_THREADS];
	unsigned int taken[CROWD_TIMERS];
};

static void *crowd_run(void *arg)
{
	struct crowd *crowd = arg;
	struct spottimer_record rec[5];
	int i, n;

	i = __atomic_fetch_add(&crowd->members, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&crowd->tid[i], gettid(), __ATOMIC_RELEASE);
	for (;;) {
		n = read_records(crowd->fd, rec, 5);
		if (n < 0)
			__atomic_fetch_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
		for (i = 0; i < n; i++) {
			/* the sign to stop, of which there is one for each */
			if (rec[i].key >= CROWD_TIMERS)
				return NULL;
			__atomic_fetch_add(&crowd->taken[rec[i].key], 1,
					   __ATOMIC_RELAXED);
			__atomic_fetch_add(&crowd->total, 1, __ATOMIC_RELEASE);
		}
	}
}

/* Begin to read with all of them. They share nothing but @crowd. */
static struct crowd *crowd_start(int fd, pthread_t *thread)
{
	struct crowd *crowd;
	int i;

	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (crowd == MAP_FAILED)
		return NULL;
	crowd->fd = fd;
	for (i = 0; i < CROWD_PROCESSES; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return NULL;
		if (!pid) {
			crowd_run(crowd);
			_exit(0);
		}
	}
	for (i = 0; i < CROWD_THREADS; i++)
		if (pthread_create(&thread[i], NULL, crowd_run, crowd))
			return NULL;
	return crowd;
}

/* Wait until all of them wait in read(). */
static bool crowd_waits(struct crowd *crowd)
{
	__s64 since = 0;
	unsigned int i;
	pid_t tid;

	for (i = 0; i < ARRAY_LEN(crowd->tid); i++) {
		while (!(tid = __atomic_load_n(&crowd->tid[i],
					       __ATOMIC_ACQUIRE)))
			if (!look_again(&since))
				return false;
		if (!wait_asleep(tid, SYS_read))
			return false;
	}
	return true;
}

static bool crowd_has_taken(struct crowd *crowd, unsigned int n)
{
	__s64 since = 0;

	while (__atomic_load_n(&crowd->total, __ATOMIC_ACQUIRE) < n)
		if (!look_again(&since))
			return false;
	return true;
}

/* End all of them. Returns how many have not ended well. */
static int crowd_stop(struct crowd *crowd, pthread_t *thread)
{
	int i, status, bad = 0;
	__u64 stop;

	/* one by one, as a read takes several */
	for (i = 0; i < CROWD_PROCESSES + CROWD_THREADS; i++) {
		stop = arm_once(crowd->fd, CROWD_TIMERS, 0, 0);
		if (!wait_state(crowd->fd, CROWD_TIMERS, stop,
				SPOTTIMER_ENDED))
			return -ETIME;
	}
	for (i = 0; i < CROWD_THREADS; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < CROWD_PROCESSES; i++)
		bad += wait(&status) < 0 || status;
	return bad;
}

/* How often they have gone to sleep so far. */
static long crowd_sleeps(const struct crowd *crowd)
{
	char path[40];
	unsigned int i;
	long sum = 0;

	for (i = 0; i < ARRAY_LEN(crowd->tid); i++) {
		/* this finds threads, too */
		snprintf(path, sizeof(path), "/proc/%d/status", crowd->tid[i]);
		sum += file_number(path, "voluntary_ctxt_switches");
	}
	return sum;
}

TEST_F(blocking, f3_each_record_goes_to_one_thread_or_process)
{
	struct spottimer_register reg[CROWD_BATCH];
	pthread_t thread[CROWD_THREADS];
	struct crowd *crowd = crowd_start(self->fd, thread);
	int i, k;

	ASSERT_NE(NULL, crowd);
	ASSERT_TRUE(crowd_waits(crowd));
	for (i = 0; i < CROWD_TIMERS; i += CROWD_BATCH) {
		for (k = 0; k < CROWD_BATCH; k++)
			reg[k] = timer_once(i + k, k % 30 * MSEC / 3);
		ASSERT_EQ(CROWD_BATCH,
			  spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg,
				     CROWD_BATCH, sizeof(reg[0])));
	}
	ASSERT_TRUE(crowd_has_taken(crowd, CROWD_TIMERS));
	ASSERT_EQ(0, crowd_stop(crowd, thread));
	EXPECT_EQ(0, crowd->wrong);
	EXPECT_EQ(CROWD_TIMERS, crowd->total);
	for (i = 0; i < CROWD_TIMERS; i++)
		ASSERT_EQ(1, crowd->taken[i]);
}

TEST_F_TIMEOUT(blocking, f3_of_many_that_wait_one_is_woken_for_a_record, 300)
{
	enum { N = 100 };
	pthread_t thread[CROWD_THREADS];
	struct crowd *crowd = crowd_start(self->fd, thread);
	long sleeps;
	int i;

	ASSERT_NE(NULL, crowd);
	ASSERT_TRUE(crowd_waits(crowd));
	sleeps = crowd_sleeps(crowd);
	for (i = 0; i < N; i++) {
		ASSERT_NE(0, arm_once(self->fd, i, MSEC, 0));
		ASSERT_TRUE(crowd_has_taken(crowd, i + 1));
	}
	ASSERT_TRUE(crowd_waits(crowd));
	/* each takes its record and sleeps again; 16 were woken otherwise */
	sleeps = crowd_sleeps(crowd) - sleeps;
	TH_LOG("%d records, and %ld times to sleep again", N, sleeps);
	EXPECT_LE(N, sleeps);
	EXPECT_GT(3 * N, sleeps);
	ASSERT_EQ(0, crowd_stop(crowd, thread));
	EXPECT_EQ(0, crowd->wrong);
}

/*
 * F1: poll, select, epoll
 */

TEST_F(ctx, f1_poll_says_readable_and_nothing_else)
{
	struct pollfd pfd = {
		.fd = self->fd,
		.events = POLLIN | POLLRDNORM | POLLOUT | POLLPRI,
	};

	EXPECT_EQ(0, poll(&pfd, 1, 0));
	ASSERT_TRUE(make_ready(self->fd, 1));
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLIN | POLLRDNORM, pfd.revents);
}

TEST_F(ctx, f1_poll_says_readable_while_there_are_records)
{
	struct spottimer_record rec[3];

	EXPECT_FALSE(readable(self->fd));
	ASSERT_TRUE(make_ready(self->fd, 3));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(2, read_records(self->fd, rec, 2));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(1, read_records(self->fd, rec, 3));
	EXPECT_FALSE(readable(self->fd));
}

TEST_F(ctx, f1_case33_poll_follows_withdrawn_records)
{
	ASSERT_TRUE(make_ready(self->fd, 4));
	ASSERT_EQ(0, cancel(self->fd, 0, 0, 0).error);
	EXPECT_TRUE(readable(self->fd));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, cancel(self->fd, 2, 0, 0).error);
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, cancel(self->fd, 3, 0, 0).error);
	EXPECT_FALSE(readable(self->fd));
	EXPECT_TRUE(nothing(self->fd));

	ASSERT_TRUE(make_ready(self->fd, 2));
	ASSERT_EQ(0, cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL).error);
	EXPECT_FALSE(readable(self->fd));
}

TEST_F(ctx, f1_poll_waits_for_a_handler)
{
	struct spottimer_record rec;

	ASSERT_NE(0, arm_every(self->fd, 1, 1, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_FALSE(readable_for(self->fd, A_WHILE));
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_TRUE(readable_for(self->fd, PATIENCE));
}

TEST_F(ctx, f1_select)
{
	struct timeval none = { 0, 0 }, patience = { PATIENCE / 1000, 0 };
	fd_set fds;

	FD_ZERO(&fds);
	FD_SET(self->fd, &fds);
	EXPECT_EQ(0, select(self->fd + 1, &fds, NULL, NULL, &none));
	ASSERT_NE(0, arm_once(self->fd, 1, 10 * MSEC, 0));
	FD_SET(self->fd, &fds);
	EXPECT_EQ(1, select(self->fd + 1, &fds, NULL, NULL, &patience));
	EXPECT_TRUE(FD_ISSET(self->fd, &fds));
}

static int epoll_on(int fd, __u32 events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	return epfd;
}

/* The events that are reported within @timeout, 0 for none. */
static __u32 epoll_events(int epfd, int timeout)
{
	struct epoll_event event = { 0 };

	return epoll_wait(epfd, &event, 1, timeout) == 1 ? event.events : 0;
}

TEST_F(ctx, f1_epoll_level_triggered)
{
	struct spottimer_record rec[2];
	int epfd = epoll_on(self->fd, EPOLLIN);

	ASSERT_LE(0, epfd);
	EXPECT_EQ(0, epoll_events(epfd, 0));
	ASSERT_NE(0, arm_once(self->fd, 1, 10 * MSEC, 0));
	ASSERT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
	ASSERT_TRUE(make_ready(self->fd, 2));

	/* for as long as there is something */
	EXPECT_EQ(EPOLLIN, epoll_events(epfd, 0));
	ASSERT_EQ(1, read_records(self->fd, rec, 1));
	EXPECT_EQ(EPOLLIN, epoll_events(epfd, 0));
	ASSERT_EQ(1, read_records(self->fd, rec, 1));
	EXPECT_EQ(0, epoll_events(epfd, 0));

	/* a withdrawn record is not reported */
	ASSERT_TRUE(make_ready(self->fd, 1));
	ASSERT_EQ(0, cancel(self->fd, 0, 0, 0).error);
	EXPECT_EQ(0, epoll_events(epfd, 0));
	close(epfd);
}

TEST_F(ctx, f1_epoll_edge_triggered)
{
	struct spottimer_record rec[4];
	int epfd = epoll_on(self->fd, EPOLLIN | EPOLLET);

	ASSERT_LE(0, epfd);
	EXPECT_EQ(0, epoll_events(epfd, 0));
	ASSERT_NE(0, arm_once(self->fd, 1, 10 * MSEC, 0));
	ASSERT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
	/* told once */
	EXPECT_EQ(0, epoll_events(epfd, 0));

	/* and again for the next tick, though the first was not read */
	ASSERT_NE(0, arm_once(self->fd, 2, 10 * MSEC, 0));
	ASSERT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
	ASSERT_EQ(2, read_records(self->fd, rec, 4));
	EXPECT_EQ(0, epoll_events(epfd, 0));

	/* the usual way: read until there is nothing */
	ASSERT_NE(0, arm_every(self->fd, 3, 3 * MSEC, 0));
	do {
		ASSERT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
		rec[0].delivery_index = 0;
		while (read_records(self->fd, rec, 1) == 1)
			;
	} while (rec[0].delivery_index < 20);
	close(epfd);
}

TEST_F(ctx, f1_epoll_edge_triggered_tells_of_a_completion)
{
	struct spottimer_record rec;
	int epfd = epoll_on(self->fd, EPOLLIN | EPOLLET);

	ASSERT_LE(0, epfd);
	ASSERT_NE(0, arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
	ASSERT_EQ(1, read_records(self->fd, &rec, 1));
	EXPECT_EQ(0, epoll_events(epfd, A_WHILE));
	ASSERT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(EPOLLIN, epoll_events(epfd, PATIENCE));
	ASSERT_EQ(1, read_records(self->fd, &rec, 1));
	close(epfd);
}

TEST_F(ctx, f1_epoll_of_many_files)
{
	enum { N = 10 };
	struct spottimer_record rec;
	struct epoll_event event;
	int epfd = epoll_create1(EPOLL_CLOEXEC), fd[N], i;
	unsigned int seen = 0;

	ASSERT_LE(0, epfd);
	for (i = 0; i < N; i++) {
		fd[i] = spot_open(O_NONBLOCK);
		ASSERT_LE(0, fd[i]);
		event.events = EPOLLIN;
		event.data.u64 = i;
		ASSERT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, fd[i], &event));
		ASSERT_NE(0, arm_once(fd[i], 100 + i, i * MSEC, 0));
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ(1, epoll_wait(epfd, &event, 1, PATIENCE));
		ASSERT_GT(N, event.data.u64);
		ASSERT_EQ(1, read_records(fd[event.data.u64], &rec, 1));
		EXPECT_EQ(100 + event.data.u64, rec.key);
		seen |= 1U << event.data.u64;
	}
	EXPECT_EQ((1 << N) - 1, seen);
	for (i = 0; i < N; i++)
		close(fd[i]);
	close(epfd);
}

/*
 * The state belongs to the open file, whoever has it.
 */

TEST_F(ctx, an_inherited_file_is_the_same_context)
{
	struct spottimer_record rec;
	int status;
	pid_t pid;

	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(cancel(self->fd, 1, 0, 0).error ||
		      !arm_once(self->fd, 2, 10 * MSEC, SPOTTIMER_REG_EXCL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	/* it is gone, and what it did has stayed */
	EXPECT_NE(SPOTTIMER_PENDING, query(self->fd, 1, 0).state);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(2, rec.key);
}

TEST_F(ctx, a_duplicate_keeps_the_context)
{
	struct spottimer_record rec;
	int fd = spot_open(O_NONBLOCK), copy;
	__u64 generation;

	ASSERT_LE(0, fd);
	generation = arm_once(fd, 1, 20 * MSEC, 0);
	ASSERT_NE(0, generation);
	copy = dup(fd);
	ASSERT_LE(0, copy);
	close(fd);
	ASSERT_EQ(0, take(copy, &rec));
	EXPECT_TICK(rec, 1, generation, 1, 1);
	close(copy);
}

TEST_F(ctx, a_file_that_was_passed_on_is_the_same_context)
{
	struct spottimer_register reg = timer_once(5, 20 * MSEC);
	struct spottimer_record rec;
	int sock[2], fd, status;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = receive_fd(sock[1]);
		_exit(fd < 0 || take(fd, &rec) || rec.key != 5 ||
		      rec.cookie != 55);
	}
	fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, fd);
	reg.cookie = 55;
	ASSERT_EQ(0, spot_register(fd, &reg));
	ASSERT_EQ(0, send_fd(sock[0], fd));
	/* on its way it is the only reference */
	close(fd);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(ctx, h5_case29_a_file_is_closed_while_its_ticks_come)
{
	enum { N = 16 };
	struct spottimer_register reg[N];
	struct spottimer_record rec;
	int fd, i, k;

	for (i = 0; i < 200; i++) {
		fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, fd);
		for (k = 0; k < N; k++) {
			reg[k] = timer_once(k, k * MSEC / 8);
			reg[k].period = MSEC / 4;
		}
		ASSERT_EQ(N, spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, N,
					sizeof(reg[0])));
		if (i % 4)
			ASSERT_TRUE(readable_for(fd, PATIENCE));
		if (i % 4 == 2)
			ASSERT_EQ(1, read_records(fd, &rec, 1));
		close(fd);
	}
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	EXPECT_EQ(0, take(self->fd, &rec));
}

TEST_HARNESS_MAIN
