// SPDX-License-Identifier: GPL-2.0
/*
 * Completion: by the read, and by hand.
 */
#include "spottimer_test.h"

TEST_F(ctx, f4_by_default_the_read_completes)
{
	struct spottimer_record rec;
	__u64 generation = arm_every(self->fd, 1, 20 * MSEC, 0);

	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(0, rec.flags & SPOTTIMER_REC_MANUAL);
	EXPECT_NE(SPOTTIMER_RUNNING, query(self->fd, 1, 0).state);
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation, 0));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, 0, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(2, rec.delivery_index);
}

TEST_F(ctx, f4_by_hand_the_handler_runs_until_it_is_completed)
{
	struct spottimer_record rec;
	__u64 generation;

	generation = arm_every(self->fd, 1, 2 * MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, generation, 1, rec.scheduled_index);
	EXPECT_EQ(SPOTTIMER_REC_TICK | SPOTTIMER_REC_MANUAL, rec.flags);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, 0).state);

	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(2, rec.delivery_index);
}

TEST_F(ctx, f4_the_last_handler_ends_the_timer)
{
	struct spottimer_record rec;
	__u64 generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);

	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(SPOTTIMER_REC_TICK | SPOTTIMER_REC_MANUAL |
		  SPOTTIMER_REC_LAST, rec.flags);
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, generation).state);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	EXPECT_EQ(SPOTTIMER_ENDED, query(self->fd, 1, generation).state);
	EXPECT_NE(0, arm_once(self->fd, 1, HOUR, SPOTTIMER_REG_EXCL));
}

TEST_F(ctx, f4_generation_0_is_the_handler_that_runs)
{
	struct spottimer_record rec;
	__u64 new;

	ASSERT_NE(0, arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	/* also where the key has a newer generation meanwhile */
	new = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	EXPECT_EQ(0, complete(self->fd, 1, 0, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, new, 1, 1);
	EXPECT_EQ(0, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, 0, 0));
}

TEST_F(ctx, f4_what_does_not_run_is_refused)
{
	struct spottimer_record rec;
	__u64 generation;

	EXPECT_EQ(-ENOENT, complete(self->fd, 1, 0, 0));
	generation = arm_every(self->fd, 1, HOUR, SPOTTIMER_REG_MANUAL);
	ASSERT_NE(0, generation);
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, 0, 0));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation, 0));

	generation = arm_every(self->fd, 1, 20 * MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(-ENOENT, complete(self->fd, 2, generation, 0));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, 0).state);
}

TEST_F(ctx, f4_to_complete_twice_is_refused)
{
	struct spottimer_record rec;
	__u64 generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);

	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation, 0));
	EXPECT_EQ(-EIO, query(self->fd, 1, generation).result);
}

TEST_F(ctx, b3_another_generation_is_refused)
{
	struct spottimer_record rec;
	__u64 old, generation;

	old = arm_once(self->fd, 1, HOUR, SPOTTIMER_REG_MANUAL);
	generation = arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_LT(old, generation);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(-ESTALE, complete(self->fd, 1, old, 0));
	EXPECT_EQ(-ENOENT, complete(self->fd, 1, generation + 1, 0));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, generation).state);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
}

TEST_F(ctx, b2_an_old_handler_is_completed_once)
{
	struct spottimer_record rec;
	__u64 old;

	old = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_NE(0, arm_once(self->fd, 1, HOUR, 0));
	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	EXPECT_EQ(-ESTALE, complete(self->fd, 1, old, 0));
}

TEST_F(ctx, h1_the_result_is_zero_or_an_error_number)
{
	static const int bad[] = { 1, INT_MAX, -4096, INT_MIN };
	struct spottimer_record rec;
	__u64 generation;
	unsigned int i;

	generation = arm_once(self->fd, 1, 0, SPOTTIMER_REG_MANUAL);
	ASSERT_EQ(0, take(self->fd, &rec));
	for (i = 0; i < ARRAY_LEN(bad); i++)
		EXPECT_EQ(-EINVAL, complete(self->fd, 1, generation, bad[i]));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, generation).state);
	EXPECT_EQ(0, complete(self->fd, 1, generation, -4095));
	EXPECT_EQ(-4095, query(self->fd, 1, generation).result);
}

TEST_F(ctx, f6_a_batch_has_a_result_for_each)
{
	enum { N = 100 };
	struct spottimer_complete entry[N];
	struct spottimer_record rec[N];
	int i;

	for (i = 0; i < N; i++)
		ASSERT_NE(0, arm_once(self->fd, i, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(N, take_all(self->fd, rec, N));
	memset(entry, 0, sizeof(entry));
	for (i = 0; i < N; i++) {
		entry[i].key = rec[i].key;
		entry[i].generation = rec[i].generation;
		entry[i].error = 1;
		if (i % 10 == 4)
			entry[i].generation += 1000;
		if (i % 10 == 7)
			entry[i].result = 1;
	}
	ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_COMPLETE, entry, N,
				sizeof(entry[0])));
	for (i = 0; i < N; i++) {
		bool good = i % 10 != 4 && i % 10 != 7;

		EXPECT_EQ(good ? 0 : i % 10 == 4 ? -ENOENT : -EINVAL,
			  entry[i].error);
		EXPECT_EQ(good ? SPOTTIMER_ENDED : SPOTTIMER_RUNNING,
			  query(self->fd, rec[i].key, rec[i].generation).state);
	}
}

struct completer {
	int fd;
	struct spottimer_record rec;
	int error;
};

static void *completer_run(void *arg)
{
	struct completer *c = arg;

	c->error = complete(c->fd, c->rec.key, c->rec.generation, 0);
	return NULL;
}

TEST_F(ctx, f4_any_thread_may_complete)
{
	struct completer c = { .fd = self->fd };
	pthread_t thread;

	ASSERT_NE(0, arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &c.rec));
	ASSERT_EQ(0, pthread_create(&thread, NULL, completer_run, &c));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, c.error);
	ASSERT_EQ(0, take(self->fd, &c.rec));
	EXPECT_EQ(2, c.rec.delivery_index);
}

TEST_F(ctx, f4_any_process_may_complete)
{
	struct completer c = { .fd = self->fd };
	int status;
	pid_t pid;

	ASSERT_NE(0, arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &c.rec));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		completer_run(&c);
		_exit(c.error ? 1 : 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, take(self->fd, &c.rec));
	EXPECT_EQ(2, c.rec.delivery_index);
}

TEST_F(ctx, f4_the_handler_outlives_the_thread_that_took_it)
{
	struct spottimer_record rec;
	int status, pipefd[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	ASSERT_NE(0, arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (take(self->fd, &rec) ||
		    write(pipefd[1], &rec, sizeof(rec)) != sizeof(rec))
			_exit(1);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(sizeof(rec), read(pipefd[0], &rec, sizeof(rec)));
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 1, 0).state);
	EXPECT_EQ(0, complete(self->fd, rec.key, rec.generation, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(2, rec.delivery_index);
}

TEST_HARNESS_MAIN
