// SPDX-License-Identifier: GPL-2.0
/*
 * Cancel: of a timer in each state, from the handler itself and from others,
 * with and without waiting, by many threads at once.
 */
#include "spottimer_test.h"

/*
 * A thread that cancels a timer. One that has started by taking a record would
 * be the handler; these are not.
 */
struct canceller {
	pthread_t thread;
	int fd;
	struct spottimer_cancel entry;
	pid_t tid;
	bool stubborn;		/* cancels again when it was interrupted */
	int interrupted;
	bool done;
};

static void *canceller_run(void *arg)
{
	struct canceller *c = arg;
	struct spottimer_cancel e = c->entry;

	__atomic_store_n(&c->tid, gettid(), __ATOMIC_RELEASE);
	for (;;) {
		c->entry = cancel(c->fd, e.key, e.generation, e.flags);
		if (!c->stubborn || c->entry.error != -EINTR)
			break;
		__atomic_fetch_add(&c->interrupted, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool canceller_start_as(struct canceller *c, int fd, __u64 key,
			       __u64 generation, __u32 flags, bool stubborn)
{
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->entry.key = key;
	c->entry.generation = generation;
	c->entry.flags = flags;
	c->stubborn = stubborn;
	return !pthread_create(&c->thread, NULL, canceller_run, c);
}

static bool canceller_start(struct canceller *c, int fd, __u64 key,
			    __u64 generation, __u32 flags)
{
	return canceller_start_as(c, fd, key, generation, flags, false);
}

/* Wait until it has to wait: it sleeps in ioctl(), and has not come back. */
static bool canceller_waits(struct canceller *c)
{
	__s64 since = 0;

	while (!__atomic_load_n(&c->tid, __ATOMIC_ACQUIRE))
		if (!look_again(&since))
			return false;
	return wait_asleep(c->tid, SYS_ioctl) &&
	       !__atomic_load_n(&c->done, __ATOMIC_ACQUIRE);
}

/* Interrupt one that waits, and wait until it waits again. */
static bool canceller_interrupt(struct canceller *c)
{
	int before = c->interrupted;
	__s64 since = 0;

	if (pthread_kill(c->thread, SIGUSR1))
		return false;
	while (__atomic_load_n(&c->interrupted, __ATOMIC_ACQUIRE) == before)
		if (!look_again(&since))
			return false;
	return canceller_waits(c);
}

static struct spottimer_cancel canceller_join(struct canceller *c)
{
	pthread_join(c->thread, NULL);
	return c->entry;
}

/* The same in a thread of its own, from start to end. */
static struct spottimer_cancel cancel_elsewhere(int fd, __u64 key,
						__u64 generation, __u32 flags)
{
	struct canceller c;

	if (!canceller_start(&c, fd, key, generation, flags)) {
		c.entry.error = -EPROTO;
		return c.entry;
	}
	return canceller_join(&c);
}

/* Register a timer and begin its first handler. Returns its generation. */
static __u64 run_handler(int fd, __u64 key, __s64 period)
{
	struct spottimer_register reg = timer_once(key, 0);
	struct spottimer_record rec;

	reg.period = period;
	reg.cookie = ~key;
	reg.flags = SPOTTIMER_REG_MANUAL;
	if (spot_register(fd, &reg) || take(fd, &rec) ||
	    rec.generation != reg.generation)
		return 0;
	return reg.generation;
}

#define EXPECT_CANCELLED(c, generation_, started_, result_) do {	\
	const struct spottimer_cancel c_ = (c);				\
									\
	EXPECT_EQ(0, c_.error);						\
	EXPECT_EQ(generation_, c_.generation);				\
	EXPECT_EQ(started_, c_.started);				\
	EXPECT_EQ(result_, c_.result);					\
} while (0)

/* The cookie is as run_handler() sets it. */
#define EXPECT_END(rec, key_, generation_, started_, result_) do {	\
	const struct spottimer_record rec_ = (rec);			\
									\
	EXPECT_EQ(SPOTTIMER_REC_END, rec_.flags);			\
	EXPECT_EQ(key_, rec_.key);					\
	EXPECT_EQ(generation_, rec_.generation);			\
	EXPECT_EQ(started_, rec_.delivery_index);			\
	EXPECT_EQ(~rec_.key, rec_.cookie);				\
	EXPECT_EQ(result_, rec_.result);				\
} while (0)

/*
 * E3: by state
 */

TEST_F(ctx, e3_a_pending_timer_ends_at_once)
{
	struct spottimer_cancel c;
	__u64 generation = arm_once(self->fd, 1, 20 * MSEC, 0);

	c = cancel(self->fd, 1, 0, 0);
	EXPECT_CANCELLED(c, generation, 0, 0);
	EXPECT_EQ(1, c.cancelled);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_TRUE(is_over(self->fd, 1, generation));
}

TEST_F(ctx, e3_a_record_that_was_not_taken_is_withdrawn)
{
	struct spottimer_cancel c;
	__u64 generation = arm_every(self->fd, 1, 1, 0);

	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	EXPECT_TRUE(readable(self->fd));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 0, 0);
	EXPECT_EQ(1, c.cancelled);
	EXPECT_FALSE(readable(self->fd));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_one_of_several_records_is_withdrawn)
{
	struct spottimer_record rec;
	__u64 a = arm_once(self->fd, 1, 0, 0);
	__u64 b = arm_once(self->fd, 2, 0, 0);

	ASSERT_TRUE(wait_state(self->fd, 1, a, SPOTTIMER_READY));
	ASSERT_TRUE(wait_state(self->fd, 2, b, SPOTTIMER_READY));
	EXPECT_EQ(0, cancel(self->fd, 1, 0, 0).error);
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 2, b, 1, 1);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, e3_case22_a_handler_cancels_what_is_in_the_same_batch)
{
	struct spottimer_record rec;
	int i;

	ASSERT_TRUE(make_ready(self->fd, 4));
	ASSERT_EQ(0, take(self->fd, &rec));
	for (i = 0; i < 4; i++)
		if (i != (int)rec.key)
			ASSERT_EQ(0, cancel(self->fd, i, 0, 0).error);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_case26_between_two_ticks_cancel_wins)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 generation;
	int i;

	for (i = 0; i < 100; i++) {
		generation = arm_every(self->fd, 1, MSEC / 2, 0);
		ASSERT_EQ(0, take(self->fd, &rec));
		c = cancel(self->fd, 1, 0, 0);
		ASSERT_EQ(0, c.error);
		ASSERT_EQ(generation, c.generation);
		ASSERT_EQ(1, c.started);
		ASSERT_FALSE(readable(self->fd));
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_without_waiting_an_end_record_follows)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);

	ASSERT_NE(0, generation);
	c = cancel_elsewhere(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT);
	EXPECT_EQ(-EINPROGRESS, c.error);
	EXPECT_EQ(generation, c.generation);
	EXPECT_EQ(1, c.cancelled);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, generation, 1, -EIO);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));

	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 1, -EIO);
}

TEST_F(ctx, e3_there_is_one_end_record_however_often_it_was_asked_for)
{
	struct spottimer_record rec;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);
	int i;

	ASSERT_NE(0, generation);
	for (i = 0; i < 3; i++)
		EXPECT_EQ(-EINPROGRESS,
			  cancel_elsewhere(self->fd, 1, generation,
					   SPOTTIMER_CANCEL_NOWAIT).error);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, generation, 1, 0);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_without_waiting_a_timer_that_does_not_run_just_ends)
{
	struct spottimer_cancel c;
	__u64 generation = arm_once(self->fd, 1, HOUR, 0);

	c = cancel(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT);
	EXPECT_CANCELLED(c, generation, 0, 0);

	generation = arm_once(self->fd, 1, 0, 0);
	ASSERT_TRUE(wait_state(self->fd, 1, 0, SPOTTIMER_READY));
	c = cancel(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT);
	EXPECT_CANCELLED(c, generation, 0, 0);

	/* and no END record for either */
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_an_end_record_is_not_lost_when_the_key_is_registered_again)
{
	struct spottimer_record rec;
	__u64 old = run_handler(self->fd, 1, MSEC), new;

	ASSERT_NE(0, old);
	EXPECT_EQ(-EINPROGRESS, cancel_elsewhere(self->fd, 1, old,
						 SPOTTIMER_CANCEL_NOWAIT).error);
	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	ASSERT_TRUE(readable_for(self->fd, PATIENCE));
	new = arm_once(self->fd, 1, HOUR, 0);
	ASSERT_LT(old, new);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, old, 1, 0);
	EXPECT_EQ(SPOTTIMER_PENDING, query(self->fd, 1, new).state);
}

/*
 * E2, E3: waiting, for a handler that succeeds and for one that fails
 */

FIXTURE(result) {
	int fd;
};

FIXTURE_VARIANT(result) {
	int value;
};

FIXTURE_VARIANT_ADD(result, success) {
	.value = 0,
};

FIXTURE_VARIANT_ADD(result, failure) {
	.value = -EIO,
};

FIXTURE_SETUP(result)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(result)
{
	close(self->fd);
}

TEST_F(result, e3_another_thread_waits_for_the_handler)
{
	struct canceller c;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);

	ASSERT_NE(0, generation);
	ASSERT_TRUE(canceller_start(&c, self->fd, 1, 0, 0));
	ASSERT_TRUE(canceller_waits(&c));

	EXPECT_EQ(0, complete(self->fd, 1, generation, variant->value));
	canceller_join(&c);
	EXPECT_CANCELLED(c.entry, generation, 1, variant->value);
	/* who has waited needs no record */
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

/* Have the third handler of a timer of owner 70 run. Returns its generation. */
static __u64 run_third_handler(int fd, __u64 key)
{
	struct spottimer_register reg = timer_once(key, 0);
	struct spottimer_record rec;
	int i;

	reg.period = MSEC;
	reg.cookie = ~key;
	reg.owner = 70;
	reg.epoch = 1;
	reg.flags = SPOTTIMER_REG_MANUAL;
	if (lease_grant(fd, 70, 1, HOUR) || spot_register(fd, &reg))
		return 0;
	for (i = 0; i < 3; i++)
		if ((i && complete(fd, key, 0, 0)) || take(fd, &rec))
			return 0;
	return reg.generation;
}

TEST_F(result, e2_64_threads_get_the_same_result)
{
	enum { N = 64 };
	struct canceller c[N];
	__u64 generation = run_third_handler(self->fd, 1);
	int i;

	ASSERT_NE(0, generation);
	for (i = 0; i < N; i++)
		ASSERT_TRUE(canceller_start(&c[i], self->fd, 1,
					    i % 2 ? generation : 0, 0));
	for (i = 0; i < N; i++)
		ASSERT_TRUE(canceller_waits(&c[i]));
	for (i = 0; i < N; i++)
		ASSERT_FALSE(__atomic_load_n(&c[i].done, __ATOMIC_ACQUIRE));

	EXPECT_EQ(0, complete(self->fd, 1, generation, variant->value));
	for (i = 0; i < N; i++) {
		canceller_join(&c[i]);
		EXPECT_CANCELLED(c[i].entry, generation, 3, variant->value);
	}
	/* and so does who comes later */
	c[0].entry = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c[0].entry, generation, 3, variant->value);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(result, e2_64_threads_that_cancel_in_eight_ways_get_the_same_result)
{
	enum { N = 64 };
	static const struct {
		__u64 key;
		__u32 flags;
		bool interrupted;
	} way[] = {
		{ 1, 0, false },
		{ 1, 0, true },
		{ 0, SPOTTIMER_CANCEL_ALL, false },
		{ 0, SPOTTIMER_CANCEL_ALL, true },
		{ 70, SPOTTIMER_CANCEL_OWNER, false },
		{ 70, SPOTTIMER_CANCEL_OWNER, true },
		{ 1, SPOTTIMER_CANCEL_NOWAIT, false },
		{ 0, SPOTTIMER_CANCEL_ALL | SPOTTIMER_CANCEL_NOWAIT, false },
	};
	const int ways = ARRAY_LEN(way);
	struct spottimer_record rec;
	struct canceller c[N];
	__u64 generation;
	int i;

	ASSERT_EQ(0, catch_signal(SIGUSR1));
	generation = run_third_handler(self->fd, 1);
	ASSERT_NE(0, generation);
	for (i = 0; i < N; i++)
		ASSERT_TRUE(canceller_start_as(&c[i], self->fd,
					       way[i % ways].key, 0,
					       way[i % ways].flags,
					       way[i % ways].interrupted));
	for (i = 0; i < N; i++) {
		if (!(way[i % ways].flags & SPOTTIMER_CANCEL_NOWAIT)) {
			ASSERT_TRUE(canceller_waits(&c[i]));
			continue;
		}
		canceller_join(&c[i]);
		EXPECT_EQ(-EINPROGRESS, c[i].entry.error);
	}
	/* once, and some of them twice */
	for (i = 0; i < 3 * N / 2; i++)
		if (way[i % ways].interrupted)
			ASSERT_TRUE(canceller_interrupt(&c[i % N]));
	for (i = 0; i < N; i++)
		if (!(way[i % ways].flags & SPOTTIMER_CANCEL_NOWAIT))
			ASSERT_FALSE(__atomic_load_n(&c[i].done,
						     __ATOMIC_ACQUIRE));

	EXPECT_EQ(0, complete(self->fd, 1, generation, variant->value));
	for (i = 0; i < N; i++) {
		if (way[i % ways].flags & SPOTTIMER_CANCEL_NOWAIT)
			continue;
		canceller_join(&c[i]);
		/* many have no generation, and no number of handlers */
		if (way[i % ways].flags)
			EXPECT_CANCELLED(c[i].entry, 0, 0, variant->value);
		else
			EXPECT_CANCELLED(c[i].entry, generation, 3,
					 variant->value);
	}
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, generation, 3, variant->value);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(result, e2_who_waits_and_who_does_not_get_the_same_result)
{
	struct canceller c[2];
	struct spottimer_record rec;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);

	ASSERT_NE(0, generation);
	ASSERT_TRUE(canceller_start(&c[0], self->fd, 1, 0, 0));
	ASSERT_TRUE(canceller_waits(&c[0]));
	EXPECT_EQ(-EINPROGRESS, cancel_elsewhere(self->fd, 1, generation,
						 SPOTTIMER_CANCEL_NOWAIT).error);
	ASSERT_TRUE(canceller_start(&c[1], self->fd, 1, generation, 0));
	ASSERT_TRUE(canceller_waits(&c[1]));

	EXPECT_EQ(0, complete(self->fd, 1, generation, variant->value));
	canceller_join(&c[0]);
	canceller_join(&c[1]);
	EXPECT_CANCELLED(c[0].entry, generation, 1, variant->value);
	EXPECT_CANCELLED(c[1].entry, generation, 1, variant->value);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, generation, 1, variant->value);
}

TEST_F(result, e2_who_waits_gets_the_result_of_the_generation_he_cancelled)
{
	struct spottimer_record rec;
	struct canceller c;
	__u64 old = run_handler(self->fd, 1, 2 * MSEC), new;

	ASSERT_NE(0, old);
	ASSERT_TRUE(canceller_start(&c, self->fd, 1, old, 0));
	ASSERT_TRUE(canceller_waits(&c));
	new = arm_once(self->fd, 1, 0, 0);
	ASSERT_LT(old, new);
	ASSERT_TRUE(wait_state(self->fd, 1, new, SPOTTIMER_HELD));
	EXPECT_FALSE(__atomic_load_n(&c.done, __ATOMIC_ACQUIRE));

	EXPECT_EQ(0, complete(self->fd, 1, old, variant->value));
	canceller_join(&c);
	EXPECT_CANCELLED(c.entry, old, 1, variant->value);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_TICK(rec, 1, new, 1, 1);
}

TEST_F(result, e5_a_timer_that_ended_by_itself_has_a_result)
{
	struct spottimer_cancel c;
	__u64 generation = run_handler(self->fd, 1, 0);

	ASSERT_NE(0, generation);
	ASSERT_EQ(0, complete(self->fd, 1, 0, variant->value));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 1, variant->value);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(result, e2_the_last_handler_decides)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 generation = run_handler(self->fd, 1, MSEC);

	ASSERT_NE(0, generation);
	ASSERT_EQ(0, complete(self->fd, 1, 0, -EDOM));
	ASSERT_EQ(0, take(self->fd, &rec));
	ASSERT_EQ(0, complete(self->fd, 1, 0, variant->value));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 2, variant->value);
}

/*
 * E4: from the handler itself
 */

TEST_F(ctx, e4_case25_the_handler_itself_does_not_wait)
{
	struct spottimer_cancel c;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);

	ASSERT_NE(0, generation);
	c = cancel(self->fd, 1, 0, 0);
	EXPECT_EQ(-EINPROGRESS, c.error);
	EXPECT_EQ(generation, c.generation);
	EXPECT_EQ(1, c.cancelled);

	/* it takes effect at completion, before the next tick */
	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 1, -EIO);
}

TEST_F(ctx, e4_case26_after_its_own_cancel_no_tick_comes)
{
	struct spottimer_record rec;
	__u64 generation = run_handler(self->fd, 1, MSEC), last;
	int i;

	ASSERT_NE(0, generation);
	EXPECT_EQ(-EINPROGRESS, cancel(self->fd, 1, 0, 0).error);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	last = arm_once(self->fd, 2, 30 * MSEC, 0);
	ASSERT_NE(0, last);
	for (i = 0, rec.key = 0; rec.key != 2; i++) {
		ASSERT_GT(2, i);
		ASSERT_EQ(0, take(self->fd, &rec));
		EXPECT_EQ(0, rec.key == 1 && rec.flags & SPOTTIMER_REC_TICK);
	}
	EXPECT_TRUE(is_over(self->fd, 1, generation));
}

TEST_F(ctx, e4_the_handler_itself_without_waiting_gets_an_end_record)
{
	struct spottimer_record rec;
	__u64 generation = run_handler(self->fd, 1, 2 * MSEC);

	ASSERT_NE(0, generation);
	EXPECT_EQ(-EINPROGRESS,
		  cancel(self->fd, 1, 0, SPOTTIMER_CANCEL_NOWAIT).error);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_END(rec, 1, generation, 1, -EIO);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, e4_where_the_read_completes_there_is_nothing_to_wait_for)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 generation = arm_every(self->fd, 1, MSEC, 0);

	ASSERT_EQ(0, take(self->fd, &rec));
	c = cancel(self->fd, 1, 0, 0);
	EXPECT_CANCELLED(c, generation, 1, 0);
}

TEST_F(ctx, e4_case27_in_its_handler_a_timer_is_cancelled_and_registered)
{
	struct spottimer_record rec;
	__u64 old = run_handler(self->fd, 1, MSEC), new;

	ASSERT_NE(0, old);
	EXPECT_EQ(-EINPROGRESS, cancel(self->fd, 1, old, 0).error);
	new = arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_EXCL);
	ASSERT_LT(old, new);
	ASSERT_TRUE(wait_state(self->fd, 1, new, SPOTTIMER_HELD));
	EXPECT_TRUE(nothing(self->fd));

	EXPECT_EQ(0, complete(self->fd, 1, old, 0));
	do {
		ASSERT_EQ(0, take(self->fd, &rec));
	} while (rec.flags & SPOTTIMER_REC_END && rec.generation == old);
	EXPECT_EQ(new, rec.generation);
	EXPECT_EQ(1, rec.delivery_index);
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_EQ(new, rec.generation);
	EXPECT_EQ(2, rec.delivery_index);
}

/* Takes a record, cancels it, and says what came of it. */
static void *taker_run(void *arg)
{
	struct canceller *c = arg;
	struct spottimer_record rec;

	if (take(c->fd, &rec))
		c->entry.error = -EPROTO;
	else
		c->entry = cancel(c->fd, rec.key, rec.generation, 0);
	return NULL;
}

TEST_F(ctx, e4_it_is_the_thread_that_took_the_record)
{
	struct canceller taker = { .fd = self->fd }, other;
	struct spottimer_cancel c;
	__u64 generation;

	generation = arm_every(self->fd, 1, MSEC, SPOTTIMER_REG_MANUAL);
	ASSERT_NE(0, generation);
	ASSERT_EQ(0, pthread_create(&taker.thread, NULL, taker_run, &taker));
	pthread_join(taker.thread, NULL);
	EXPECT_EQ(-EINPROGRESS, taker.entry.error);

	/* it is gone; to everybody else the handler just runs */
	ASSERT_TRUE(canceller_start(&other, self->fd, 1, generation, 0));
	ASSERT_TRUE(canceller_waits(&other));
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	c = canceller_join(&other);
	EXPECT_CANCELLED(c, generation, 1, 0);
}

/*
 * E5, E6
 */

TEST_F(ctx, e5_what_has_ended_returns_its_result_again)
{
	struct spottimer_record rec;
	struct spottimer_cancel c;
	__u64 generation = arm_once(self->fd, 1, HOUR, 0);
	int i;

	ASSERT_NE(0, generation);
	for (i = 0; i < 3; i++) {
		c = cancel(self->fd, 1, generation, 0);
		EXPECT_CANCELLED(c, generation, 0, 0);
	}
	generation = arm_once(self->fd, 2, 0, 0);
	ASSERT_EQ(0, take(self->fd, &rec));
	for (i = 0; i < 3; i++) {
		c = cancel(self->fd, 2, generation,
			   i == 2 ? SPOTTIMER_CANCEL_NOWAIT : 0);
		EXPECT_CANCELLED(c, generation, 1, 0);
	}
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(ctx, e5_what_never_existed_is_not_found)
{
	__u64 generation;

	EXPECT_EQ(-ENOENT, cancel(self->fd, 1, 0, 0).error);
	EXPECT_EQ(-ENOENT, cancel(self->fd, 1, 1, 0).error);
	generation = arm_once(self->fd, 1, HOUR, 0);
	ASSERT_NE(0, generation);
	EXPECT_EQ(-ENOENT, cancel(self->fd, 1, generation + 1, 0).error);
	EXPECT_EQ(-ENOENT, cancel(self->fd, 2, 0, 0).error);
	EXPECT_EQ(-ENOENT, cancel(self->fd, 2, generation, 0).error);
	EXPECT_EQ(SPOTTIMER_PENDING, query(self->fd, 1, generation).state);
}

TEST_F(ctx, e5_what_was_replaced_is_stale)
{
	__u64 old = arm_once(self->fd, 1, HOUR, 0);
	__u64 new = arm_once(self->fd, 1, HOUR, 0);

	EXPECT_EQ(-ESTALE, cancel(self->fd, 1, old, 0).error);
	EXPECT_EQ(SPOTTIMER_PENDING, query(self->fd, 1, new).state);
}

TEST_F(ctx, e5_the_newest_results_are_remembered)
{
	struct spottimer_info info;
	struct spottimer_cancel c;
	__u64 *generation;
	__u32 n, i;

	ASSERT_EQ(0, spot_info(self->fd, &info));
	ASSERT_LT(0, info.ended);
	n = 2 * info.ended;
	generation = calloc(n, sizeof(*generation));
	ASSERT_NE(NULL, generation);
	for (i = 0; i < n; i++) {
		generation[i] = arm_once(self->fd, i, HOUR, 0);
		ASSERT_NE(0, generation[i]);
		ASSERT_EQ(0, cancel(self->fd, i, 0, 0).error);
	}
	for (i = 0; i < n; i++) {
		c = cancel(self->fd, i, generation[i], 0);
		if (i < n - info.ended && c.error == -ENOENT)
			continue;
		ASSERT_EQ(0, c.error);
		ASSERT_EQ(generation[i], c.generation);
		ASSERT_EQ(0, c.result);
		ASSERT_EQ(0, c.started);
	}
	free(generation);
}

TEST_F(ctx, e6_the_number_of_handlers_is_told)
{
	struct spottimer_record rec[5];
	struct spottimer_cancel c;
	__u64 generation = arm_every(self->fd, 1, MSEC, 0);

	ASSERT_EQ(5, take_all(self->fd, rec, 5));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 5, 0);

	generation = arm_every(self->fd, 1, HOUR, 0);
	c = cancel(self->fd, 1, 0, 0);
	EXPECT_CANCELLED(c, generation, 0, 0);
}

/*
 * E7: many at once
 */

TEST_F(ctx, e7_all_timers_of_the_context)
{
	struct spottimer_cancel c;
	__u64 generation[10];
	int i;

	for (i = 0; i < 10; i++) {
		generation[i] = arm_every(self->fd, i,
					  i < 5 ? MSEC : HOUR, 0);
		ASSERT_NE(0, generation[i]);
	}
	ASSERT_TRUE(wait_state(self->fd, 0, 0, SPOTTIMER_READY));
	c = cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(0, c.result);
	EXPECT_EQ(10, c.cancelled);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	for (i = 0; i < 10; i++)
		EXPECT_TRUE(is_over(self->fd, i, generation[i]));

	/* there is nothing left, and that is no error */
	c = cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(0, c.cancelled);
	EXPECT_NE(0, arm_once(self->fd, 1, HOUR, SPOTTIMER_REG_EXCL));
}

TEST_F(ctx, e7_all_timers_of_an_owner)
{
	struct spottimer_register reg;
	struct spottimer_cancel c;
	int i;

	ASSERT_EQ(0, lease_grant(self->fd, 70, 1, HOUR));
	ASSERT_EQ(0, lease_grant(self->fd, 71, 1, HOUR));
	for (i = 0; i < 9; i++) {
		reg = timer_once(i, HOUR);
		if (i % 3) {
			reg.owner = 69 + i % 3;
			reg.epoch = 1;
		}
		ASSERT_EQ(0, spot_register(self->fd, &reg));
	}
	c = cancel(self->fd, 70, 0, SPOTTIMER_CANCEL_OWNER);
	EXPECT_EQ(0, c.error);
	EXPECT_EQ(3, c.cancelled);
	for (i = 0; i < 9; i++)
		EXPECT_EQ(i % 3 != 1,
			  query(self->fd, i, 0).state == SPOTTIMER_PENDING);

	/* the lease goes on */
	reg = timer_once(1, HOUR);
	reg.owner = 70;
	reg.epoch = 1;
	reg.flags = SPOTTIMER_REG_EXCL;
	EXPECT_EQ(0, spot_register(self->fd, &reg));
}

TEST_F(result, e7_all_waits_for_handlers_and_returns_their_error)
{
	struct canceller c;
	__u64 a = run_handler(self->fd, 1, MSEC);
	__u64 b = run_handler(self->fd, 2, MSEC);

	ASSERT_NE(0, a);
	ASSERT_NE(0, b);
	ASSERT_NE(0, arm_once(self->fd, 3, HOUR, 0));
	ASSERT_TRUE(canceller_start(&c, self->fd, 0, 0, SPOTTIMER_CANCEL_ALL));
	ASSERT_TRUE(canceller_waits(&c));
	EXPECT_EQ(0, complete(self->fd, 1, a, 0));
	EXPECT_FALSE(__atomic_load_n(&c.done, __ATOMIC_ACQUIRE));
	EXPECT_EQ(0, complete(self->fd, 2, b, variant->value));
	canceller_join(&c);
	EXPECT_EQ(0, c.entry.error);
	EXPECT_EQ(3, c.entry.cancelled);
	EXPECT_EQ(variant->value, c.entry.result);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e7_all_from_a_handler_does_not_wait_for_that)
{
	struct spottimer_cancel c;
	__u64 generation = run_handler(self->fd, 1, MSEC);

	ASSERT_NE(0, generation);
	ASSERT_NE(0, arm_once(self->fd, 2, HOUR, 0));
	c = cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	EXPECT_EQ(-EINPROGRESS, c.error);
	EXPECT_EQ(2, c.cancelled);
	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	EXPECT_TRUE(is_over(self->fd, 1, generation));
}

TEST_F(ctx, e7_all_without_waiting_gives_an_end_record_for_each_that_runs)
{
	struct spottimer_record rec[2];
	struct spottimer_cancel c;
	__u64 generation[2];
	int i;

	for (i = 0; i < 2; i++) {
		generation[i] = run_handler(self->fd, i, MSEC);
		ASSERT_NE(0, generation[i]);
	}
	ASSERT_NE(0, arm_once(self->fd, 3, HOUR, 0));
	c = cancel_elsewhere(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL |
					     SPOTTIMER_CANCEL_NOWAIT);
	EXPECT_EQ(-EINPROGRESS, c.error);
	EXPECT_EQ(3, c.cancelled);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, complete(self->fd, i, generation[i], -i));
		ASSERT_EQ(0, take(self->fd, &rec[i]));
		EXPECT_END(rec[i], i, generation[i], 1, -i);
	}
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, f6_a_batch_has_a_result_for_each)
{
	struct spottimer_cancel c[6];
	__u64 generation[6];
	int i;

	for (i = 0; i < 6; i++)
		generation[i] = arm_once(self->fd, i, HOUR, 0);
	ASSERT_EQ(0, cancel(self->fd, 3, 0, 0).error);
	memset(c, 0, sizeof(c));
	for (i = 0; i < 6; i++) {
		c[i].key = i;
		c[i].generation = i == 3 ? generation[i] : 0;
		c[i].error = 1;
	}
	c[1].key = 100;
	c[2].flags = 1U << 31;
	c[4].generation = generation[4] + 100;
	ASSERT_EQ(6, spot_batch(self->fd, SPOTTIMER_IOC_CANCEL, c, 6,
				sizeof(c[0])));
	EXPECT_EQ(0, c[0].error);
	EXPECT_EQ(-ENOENT, c[1].error);
	EXPECT_EQ(-EINVAL, c[2].error);
	EXPECT_EQ(0, c[3].error);
	EXPECT_EQ(-ENOENT, c[4].error);
	EXPECT_EQ(0, c[5].error);
	for (i = 0; i < 6; i++)
		EXPECT_EQ(i == 1 || i == 2 || i == 4,
			  !is_over(self->fd, i, generation[i]));
}

/*
 * Interrupted and killed
 */

TEST_F(ctx, e3_a_signal_ends_the_wait_but_not_the_cancel)
{
	struct canceller c;
	__u64 generation;

	ASSERT_EQ(0, catch_signal(SIGUSR1));
	generation = run_handler(self->fd, 1, MSEC);
	ASSERT_NE(0, generation);
	ASSERT_TRUE(canceller_start(&c, self->fd, 1, 0, 0));
	ASSERT_TRUE(canceller_waits(&c));
	ASSERT_EQ(0, pthread_kill(c.thread, SIGUSR1));
	canceller_join(&c);
	EXPECT_EQ(-EINTR, c.entry.error);
	EXPECT_EQ(generation, c.entry.generation);

	/* to cancel the same generation again is to wait on */
	ASSERT_TRUE(canceller_start(&c, self->fd, 1, generation, 0));
	ASSERT_TRUE(canceller_waits(&c));
	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	canceller_join(&c);
	EXPECT_CANCELLED(c.entry, generation, 1, -EIO);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

TEST_F(ctx, e3_case29_who_is_killed_while_he_waits_leaves_the_cancel)
{
	__u64 generation = run_handler(self->fd, 1, MSEC);
	struct spottimer_cancel c;
	int status;
	pid_t pid;

	ASSERT_NE(0, generation);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		cancel(self->fd, 1, 0, 0);
		_exit(1);
	}
	ASSERT_TRUE(wait_asleep(pid, SYS_ioctl));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));

	EXPECT_EQ(0, complete(self->fd, 1, generation, 0));
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 1, 0);
}

TEST_F(ctx, e3_h5_case29_a_process_exits_while_its_threads_wait_in_cancel)
{
	__u64 generation = run_handler(self->fd, 1, MSEC);
	struct canceller shared, own;
	struct spottimer_cancel c;
	int fd, status;
	pid_t pid;

	ASSERT_NE(0, generation);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* of one of the files this is the last reference */
		fd = spot_open(O_NONBLOCK);
		if (fd < 0 || !run_handler(fd, 1, MSEC) ||
		    !canceller_start(&shared, self->fd, 1, 0, 0) ||
		    !canceller_start(&own, fd, 1, 0, 0))
			_exit(1);
		_exit(canceller_waits(&shared) && canceller_waits(&own) ?
		      0 : 2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);

	EXPECT_EQ(0, complete(self->fd, 1, generation, -EIO));
	c = cancel(self->fd, 1, generation, 0);
	EXPECT_CANCELLED(c, generation, 1, -EIO);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

/*
 * E1 with everything at once: two threads register and cancel one key, a
 * third one reads. All is written down, and compared in the end. A timer's
 * cookie is its place in the list of those registered.
 */

enum {
	RACE_ROUNDS = 1500,
	RACE_MAX = 2 * RACE_ROUNDS,
};

struct race {
	int fd;
	int threads;
	unsigned int unexpected;
	unsigned int nr_registered;
	__u64 registered[RACE_MAX];
	__u64 reads[RACE_MAX];
	__s64 last_read[RACE_MAX];
	unsigned int nr_cancelled;
	struct spottimer_cancel cancelled[RACE_MAX];
	__s64 cancelled_at[RACE_MAX];
};

static unsigned int race_next(unsigned int *counter)
{
	return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void *race_churn(void *arg)
{
	struct race *race = arg;
	struct spottimer_register reg;
	struct spottimer_cancel c;
	unsigned int i, n;

	for (i = 0; i < RACE_ROUNDS; i++) {
		/* one tick after the other, now and then in half a wheel tick */
		n = race_next(&race->nr_registered);
		reg = timer_once(1, i % 3 * MSEC / 2);
		reg.period = 1;
		reg.cookie = n;
		if (spot_register(race->fd, &reg))
			race_next(&race->unexpected);
		race->registered[n] = reg.generation;
		if (i % 8 == 0)
			sched_yield();
		c = cancel(race->fd, 1, i % 2 ? reg.generation : 0, 0);
		if (!c.error) {
			n = race_next(&race->nr_cancelled);
			race->cancelled[n] = c;
			race->cancelled_at[n] = now();
		} else if (c.error != -ENOENT && c.error != -ESTALE) {
			race_next(&race->unexpected);
		}
	}
	__atomic_fetch_sub(&race->threads, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *race_read(void *arg)
{
	struct race *race = arg;
	struct spottimer_record rec[4];
	__s64 begin;
	int i, n;

	do {
		begin = now();
		n = read_records(race->fd, rec, 4);
		for (i = 0; i < n; i++) {
			__u64 k = rec[i].cookie;

			if (k < RACE_MAX &&
			    rec[i].delivery_index == ++race->reads[k])
				race->last_read[k] = begin;
			else
				race_next(&race->unexpected);
		}
		if (n <= 0 && n != -EAGAIN)
			race_next(&race->unexpected);
	} while (__atomic_load_n(&race->threads, __ATOMIC_ACQUIRE));
	return NULL;
}

TEST_F_TIMEOUT(ctx, e1_case22_two_threads_register_and_cancel_one_key, 120)
{
	static struct race race;
	pthread_t thread[3];
	unsigned int i, k;

	race.fd = self->fd;
	race.threads = 2;
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, race_churn, &race));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, race_churn, &race));
	ASSERT_EQ(0, pthread_create(&thread[2], NULL, race_read, &race));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, race.unexpected);
	ASSERT_EQ(RACE_MAX, race.nr_registered);
	ASSERT_LT(0, race.nr_cancelled);

	for (i = 0; i < race.nr_cancelled; i++) {
		const struct spottimer_cancel *c = &race.cancelled[i];
		unsigned int found = 0, owner = 0;

		for (k = 0; k < RACE_MAX; k++) {
			if (race.registered[k] != c->generation)
				continue;
			found++;
			owner = k;
		}
		/* B3: no generation is there twice */
		ASSERT_EQ(1, found);
		/* E6: what was read is what had started */
		ASSERT_EQ(c->started, race.reads[owner]);
		/* E1: no read began afterwards that returned it */
		ASSERT_GE(race.cancelled_at[i], race.last_read[owner]);
	}
	cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL);
	EXPECT_TRUE(nothing_for(self->fd, A_WHILE));
}

/*
 * Four threads work on a file, each in its way, until it is closed.
 */

struct closing {
	pthread_t thread;
	int fd;
	int way;
	int calls;
	int unexpected;
};

static int closing_call(int fd, int way, int i)
{
	struct spottimer_register reg;
	struct spottimer_record rec[4];

	switch (way) {
	case 0:
		reg = timer_once(i % 50, i % 3 * MSEC / 2);
		reg.period = 1;
		return spot_register(fd, &reg);
	case 1:
		if (i % 20)
			return cancel(fd, i % 50, 0, 0).error;
		return cancel(fd, 0, 0, SPOTTIMER_CANCEL_ALL).error;
	case 2:
		return read_records(fd, rec, 1 + i % 4);
	default:
		return readable(fd) ? 0 : query(fd, i % 50, 0).error;
	}
}

static void *closing_run(void *arg)
{
	struct closing *c = arg;
	int ret, i;

	for (i = 0; ; i++) {
		ret = closing_call(c->fd, c->way, i);
		if (ret == -EBADF)
			return NULL;
		if (ret < 0 && ret != -EAGAIN && ret != -ENOENT)
			c->unexpected++;
		__atomic_store_n(&c->calls, i + 1, __ATOMIC_RELAXED);
	}
}

TEST_F_TIMEOUT(ctx, e1_h5_case29_a_file_is_closed_while_four_threads_use_it,
	       120)
{
	struct spottimer_record rec;
	struct closing c[4];
	int round, i;

	for (round = 0; round < 60; round++) {
		__s64 since = 0;

		memset(c, 0, sizeof(c));
		c[0].fd = spot_open(O_NONBLOCK);
		ASSERT_LE(0, c[0].fd);
		for (i = 0; i < 4; i++) {
			c[i].fd = c[0].fd;
			c[i].way = i;
			ASSERT_EQ(0, pthread_create(&c[i].thread, NULL,
						    closing_run, &c[i]));
		}
		/* not before all of them are at it */
		for (i = 0; i < 4; i++)
			while (__atomic_load_n(&c[i].calls,
					       __ATOMIC_RELAXED) < 20)
				ASSERT_TRUE(look_again(&since));
		/* nobody opens anything before all have seen that it is gone */
		ASSERT_EQ(0, close(c[0].fd));
		for (i = 0; i < 4; i++) {
			pthread_join(c[i].thread, NULL);
			ASSERT_EQ(0, c[i].unexpected);
		}
	}
	ASSERT_NE(0, arm_once(self->fd, 1, 0, 0));
	EXPECT_EQ(0, take(self->fd, &rec));
}

TEST_F_TIMEOUT(ctx, e5_case31_a_million_that_were_cancelled_leave_no_memory,
	       300)
{
	enum { N = 1000 };
	static struct spottimer_register reg[N];
	static struct spottimer_cancel c[N];
	const int rounds = 1000000 / scale() / N;
	long long memory = 0;
	long slab = 0;
	int i, k;

	for (i = 0; i < rounds; i++) {
		memset(c, 0, sizeof(c));
		for (k = 0; k < N; k++) {
			reg[k] = timer_once(i * N + k, HOUR);
			c[k].key = i * N + k;
		}
		ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg,
					N, sizeof(reg[0])));
		/*
		 * As many ends as it may remember have come together by then,
		 * and there will never be more timers than now.
		 */
		if (i == 9) {
			memory = read_fdinfo(self->fd, "memory");
			slab = slab_kb();
			ASSERT_LT(0, memory);
			ASSERT_LT(0, slab);
		}
		ASSERT_EQ(N, spot_batch(self->fd, SPOTTIMER_IOC_CANCEL, c, N,
					sizeof(c[0])));
		for (k = 0; k < N; k++)
			ASSERT_EQ(1, c[k].cancelled);
	}
	EXPECT_GE(memory, read_fdinfo(self->fd, "memory"));
	EXPECT_EQ(0, read_fdinfo(self->fd, "registered"));
	TH_LOG("%ld kB of slab memory, then %ld", slab, slab_kb());
	/*
	 * A tenth of what a million would take, if not freed at all. A kernel
	 * that looks for mistakes keeps what was freed for a while.
	 */
	if (rounds == 1000)
		EXPECT_GT(slab + 12500, slab_kb());
}

TEST_HARNESS_MAIN
