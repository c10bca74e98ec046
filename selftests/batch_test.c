// SPDX-License-Identifier: GPL-2.0
/*
 * Batches of all sizes around that of a chunk, in which some entries fail in
 * different ways at places without a pattern. What each entry is to look like
 * afterwards is written down before the call.
 */
#include "spottimer_test.h"

enum {
	MAX = 4096,
	UNKNOWN = 1 << 20,	/* a key that nobody uses, a bit that is no flag */
};

FIXTURE(batch) {
	int fd;
	int n;
};

FIXTURE_VARIANT(batch) {
	int n;
};

FIXTURE_VARIANT_ADD(batch, of_1) { .n = 1 };
FIXTURE_VARIANT_ADD(batch, of_2) { .n = 2 };
FIXTURE_VARIANT_ADD(batch, of_63) { .n = 63 };
FIXTURE_VARIANT_ADD(batch, of_64) { .n = 64 };
FIXTURE_VARIANT_ADD(batch, of_65) { .n = 65 };
FIXTURE_VARIANT_ADD(batch, of_127) { .n = 127 };
FIXTURE_VARIANT_ADD(batch, of_128) { .n = 128 };
FIXTURE_VARIANT_ADD(batch, of_129) { .n = 129 };
FIXTURE_VARIANT_ADD(batch, of_1000) { .n = 1000 };
FIXTURE_VARIANT_ADD(batch, of_4095) { .n = 4095 };
FIXTURE_VARIANT_ADD(batch, of_4096) { .n = 4096 };

FIXTURE_SETUP(batch)
{
	if (variant->n > 1000 && scale() > 1)
		SKIP(return, "this kernel takes too long for so many");
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->n = variant->n;
}

FIXTURE_TEARDOWN(batch)
{
	close(self->fd);
}

/* A number below @sides that depends on @i, the same in each run. */
static unsigned int dice(unsigned int i, unsigned int sides)
{
	__u64 x = (i + 1) * 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ULL;
	return (x ^ x >> 29) % sides;
}

/* The first of @n entries that is not as it should be, @n if there is none. */
static int first_wrong(const void *entry, const void *want, size_t size, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (memcmp(entry + i * size, want + i * size, size))
			break;
	return i;
}

/* Two generations of a key. Returns the first, and the second in @new. */
static __u64 arm_twice(int fd, __u64 key, __u64 *new)
{
	__u64 old = arm_once(fd, key, HOUR, 0);

	*new = arm_once(fd, key, HOUR, 0);
	return *new ? old : 0;
}

TEST_F(batch, f6_register_has_a_result_for_each)
{
	static struct spottimer_register reg[MAX], want[MAX];
	static __u64 there[MAX];
	int n = self->n, registered = 0, i;
	struct spottimer_query q;
	__u64 last;

	for (i = 0; i < n; i++) {
		int error = 0;

		reg[i] = timer_once(i, HOUR + i);
		reg[i].cookie = ~i;
		reg[i].error = 1;
		switch (dice(i, 12)) {
		case 0:
			reg[i].first = -1;
			error = -EINVAL;
			break;
		case 1:
			reg[i].clock = 77;
			error = -EINVAL;
			break;
		case 2:
			there[i] = arm_once(self->fd, i, HOUR, 0);
			reg[i].flags = SPOTTIMER_REG_EXCL;
			error = -EEXIST;
			break;
		case 3:
			reg[i].flags = SPOTTIMER_REG_REARM;
			error = -ENOENT;
			break;
		case 4:
			reg[i].generation = arm_twice(self->fd, i, &there[i]);
			ASSERT_NE(0, reg[i].generation);
			error = -ESTALE;
			break;
		case 5:
			reg[i].owner = 5;
			reg[i].epoch = 1;
			error = -EKEYEXPIRED;
			break;
		}
		want[i] = reg[i];
		want[i].error = error;
		registered += !error || there[i];
	}
	last = arm_once(self->fd, UNKNOWN, HOUR, 0);
	ASSERT_NE(0, last);
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, n,
				sizeof(reg[0])));

	/* the numbers of new generations are not known before, but grow */
	for (i = 0; i < n; i++) {
		if (want[i].error)
			continue;
		ASSERT_LT(last, reg[i].generation);
		last = reg[i].generation;
		want[i].generation = last;
		there[i] = last;
	}
	ASSERT_EQ(n, first_wrong(reg, want, sizeof(reg[0]), n));
	for (i = 0; i < n; i++) {
		q = query(self->fd, i, 0);
		ASSERT_EQ(there[i] ? 0 : -ENOENT, q.error);
		ASSERT_EQ(there[i], q.generation);
		if (!there[i])
			continue;
		ASSERT_EQ(SPOTTIMER_PENDING, q.state);
		ASSERT_EQ(want[i].error ? 0 : (__u64)~i, q.cookie);
	}
	EXPECT_EQ(registered + 1, read_fdinfo(self->fd, "registered"));
}

/* Register timers that are due, by hand or not, and wait until all are ready. */
static bool make_due(int fd, struct spottimer_register *reg, int n,
		     __s64 period, __u32 flags)
{
	int i;

	for (i = 0; i < n; i++) {
		reg[i] = timer_once(i, 0);
		reg[i].period = period;
		reg[i].flags = flags;
	}
	if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, n,
		       sizeof(reg[0])) != n)
		return false;
	for (i = 0; i < n; i++)
		if (!wait_state(fd, i, reg[i].generation, SPOTTIMER_READY))
			return false;
	return true;
}

TEST_F(batch, f6_cancel_has_a_result_for_each)
{
	static struct spottimer_register reg[MAX];
	static struct spottimer_cancel c[MAX], want[MAX];
	static struct spottimer_record rec[MAX];
	static __u32 state[MAX];
	int n = self->n, ends = 0, i;

	/* handlers that run */
	ASSERT_TRUE(make_due(self->fd, reg, n, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(n, read_records(self->fd, rec, n));

	memset(c, 0, sizeof(c));
	for (i = 0; i < n; i++) {
		struct spottimer_cancel *w = &want[i];
		__u64 generation = reg[i].generation, new;
		unsigned int kind = dice(i, 12);

		/* and most of them replaced by timers that wait */
		if (kind) {
			ASSERT_EQ(0, complete(self->fd, i, generation, 0));
			generation = arm_twice(self->fd, i, &new);
			ASSERT_NE(0, generation);
		} else {
			new = generation;
		}
		c[i].key = i;
		c[i].error = 1;
		state[i] = SPOTTIMER_PENDING;
		*w = c[i];
		switch (kind) {
		case 0:
			c[i].flags = SPOTTIMER_CANCEL_NOWAIT;
			w->error = -EINPROGRESS;
			w->started = 1;
			state[i] = SPOTTIMER_RUNNING;
			ends++;
			break;
		case 1:
			c[i].generation = generation;
			w->error = -ESTALE;
			break;
		case 2:
			c[i].flags = UNKNOWN;
			w->error = -EINVAL;
			break;
		case 3:
			c[i].key = i + UNKNOWN;
			w->error = -ENOENT;
			break;
		case 4:
			c[i].generation = new + UNKNOWN;
			w->error = -ENOENT;
			break;
		case 5:
			/* has just been ended, or never existed */
			if (i && !want[i - 1].error) {
				c[i].key = c[i - 1].key;
				c[i].generation = want[i - 1].generation;
				w->error = 0;
			} else {
				c[i].key = UNKNOWN;
				w->error = -ENOENT;
			}
			break;
		default:
			w->error = 0;
			state[i] = SPOTTIMER_ENDED;
		}
		w->key = c[i].key;
		w->flags = c[i].flags;
		w->generation = c[i].generation;
		if (state[i] != SPOTTIMER_PENDING) {
			w->generation = new;
			w->cancelled = 1;
		}
	}
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_CANCEL, c, n,
				sizeof(c[0])));
	ASSERT_EQ(n, first_wrong(c, want, sizeof(c[0]), n));

	for (i = 0; i < n; i++) {
		if (state[i] == SPOTTIMER_ENDED) {
			ASSERT_TRUE(is_over(self->fd, i, want[i].generation));
			continue;
		}
		ASSERT_EQ(state[i], query(self->fd, i, 0).state);
	}
	ASSERT_TRUE(nothing(self->fd));
	for (i = 0; i < n; i++)
		if (state[i] == SPOTTIMER_RUNNING)
			ASSERT_EQ(0, complete(self->fd, i, 0, 0));
	if (ends)
		ASSERT_EQ(ends, read_records(self->fd, rec, n));
	for (i = 0; i < ends; i++)
		ASSERT_EQ(SPOTTIMER_REC_END, rec[i].flags);
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(batch, f6_complete_has_a_result_for_each)
{
	static struct spottimer_register reg[MAX];
	static struct spottimer_complete entry[MAX], want[MAX];
	static struct spottimer_record rec[MAX];
	int n = self->n, i;

	/* of each key a generation that was replaced, and a handler that runs */
	for (i = 0; i < n; i++)
		reg[i] = timer_once(i, HOUR);
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg, n,
				sizeof(reg[0])));
	for (i = 0; i < n; i++)
		want[i].generation = reg[i].generation;
	ASSERT_TRUE(make_due(self->fd, reg, n, HOUR, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(n, read_records(self->fd, rec, n));

	memset(entry, 0, sizeof(entry));
	for (i = 0; i < n; i++) {
		__u64 old = want[i].generation;
		int error = 0;

		entry[i].key = i;
		entry[i].generation = i % 2 ? reg[i].generation : 0;
		entry[i].result = -(i % 4096);
		entry[i].error = 1;
		switch (dice(i, 12)) {
		case 0:
			entry[i].key = i + UNKNOWN;
			error = -ENOENT;
			break;
		case 1:
			entry[i].generation = old;
			error = -ESTALE;
			break;
		case 2:
			entry[i].result = i + 1;
			error = -EINVAL;
			break;
		case 3:
			entry[i].flags = UNKNOWN;
			error = -EINVAL;
			break;
		case 4:
			/* has just been completed, or never existed */
			if (i && !want[i - 1].error)
				entry[i] = entry[i - 1];
			else
				entry[i].key = UNKNOWN;
			error = -ENOENT;
			break;
		}
		want[i] = entry[i];
		want[i].error = error;
	}
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_COMPLETE, entry, n,
				sizeof(entry[0])));
	ASSERT_EQ(n, first_wrong(entry, want, sizeof(entry[0]), n));
	for (i = 0; i < n; i++) {
		struct spottimer_query q = query(self->fd, i, 0);

		ASSERT_EQ(0, q.error);
		ASSERT_EQ(reg[i].generation, q.generation);
		ASSERT_EQ(want[i].error ? SPOTTIMER_RUNNING :
					  SPOTTIMER_PENDING, q.state);
		ASSERT_EQ(want[i].error ? 0 : want[i].result, q.result);
	}
}

TEST_F(batch, f6_query_has_a_result_for_each)
{
	static struct spottimer_query q[MAX], want[MAX];
	int n = self->n, i;

	memset(q, 0, sizeof(q));
	memset(want, 0, sizeof(want));
	for (i = 0; i < n; i++) {
		__u64 old, new;
		int error = 0;

		old = arm_twice(self->fd, i, &new);
		ASSERT_NE(0, old);
		q[i].key = i;
		q[i].generation = i % 2 ? new : 0;
		q[i].error = 1;
		switch (dice(i, 12)) {
		case 0:
			q[i].key = i + UNKNOWN;
			error = -ENOENT;
			break;
		case 1:
			q[i].generation = old;
			error = -ESTALE;
			break;
		case 2:
			q[i].flags = UNKNOWN;
			error = -EINVAL;
			break;
		case 3:
			q[i].reserved = 1;
			error = -EINVAL;
			break;
		}
		want[i] = q[i];
		want[i].error = error;
		if (!error) {
			want[i].generation = new;
			want[i].state = SPOTTIMER_PENDING;
		}
	}
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_QUERY, q, n,
				sizeof(q[0])));
	for (i = 0; i < n; i++) {
		if (want[i].error)
			continue;
		ASSERT_LT(HOUR / 2, q[i].remaining);
		ASSERT_GE(HOUR, q[i].remaining);
		want[i].remaining = q[i].remaining;
	}
	EXPECT_EQ(n, first_wrong(q, want, sizeof(q[0]), n));
}

TEST_F(batch, f6_lease_has_a_result_for_each)
{
	static struct spottimer_lease entry[MAX], want[MAX];
	static __u64 epoch[MAX];
	struct spottimer_register reg;
	int n = self->n, i;

	/* half of the owners have a lease already */
	memset(entry, 0, sizeof(entry));
	for (i = 0; i < n; i++) {
		struct spottimer_lease *e = &entry[i];
		int error = 0;

		e->owner = i + 1;
		e->epoch = 20;
		e->op = SPOTTIMER_LEASE_GRANT;
		e->deadline = HOUR + i;
		e->error = 1;
		if (i % 2) {
			ASSERT_EQ(0, lease_grant(self->fd, e->owner, 10, HOUR));
			epoch[i] = 10;
		}
		switch (dice(i, 12)) {
		case 0:
			e->epoch = 0;
			error = -EINVAL;
			break;
		case 1:
			e->op = 3;
			error = -EINVAL;
			break;
		case 2:
			e->deadline = 0;
			error = -EINVAL;
			break;
		case 3:
			e->op = SPOTTIMER_LEASE_RENEW;
			error = i % 2 ? -ESTALE : -EKEYEXPIRED;
			break;
		case 4:
			e->op = SPOTTIMER_LEASE_RENEW;
			e->epoch = 10;
			error = i % 2 ? 0 : -EKEYEXPIRED;
			break;
		case 5:
			e->op = SPOTTIMER_LEASE_REVOKE;
			e->epoch = 10;
			e->deadline = 0;
			error = i % 2 ? 0 : -EKEYEXPIRED;
			epoch[i] = 0;
			break;
		case 6:
			e->epoch = 10;
			error = i % 2 ? -ESTALE : 0;
			epoch[i] = 10;
			break;
		default:
			epoch[i] = 20;
		}
		want[i] = *e;
		want[i].error = error;
	}
	ASSERT_EQ(n, spot_batch(self->fd, SPOTTIMER_IOC_LEASE, entry, n,
				sizeof(entry[0])));
	ASSERT_EQ(n, first_wrong(entry, want, sizeof(entry[0]), n));

	/* who has a lease now, and of which epoch */
	for (i = 0; i < n; i++) {
		reg = timer_once(i, HOUR);
		reg.owner = i + 1;
		reg.epoch = epoch[i] ? epoch[i] : 10;
		ASSERT_EQ(epoch[i] ? 0 : -EKEYEXPIRED,
			  spot_register(self->fd, &reg));
	}
}

/* Each of @n timers has one record, with its generation. */
static bool is_complete(const struct spottimer_register *reg,
			const struct spottimer_record *rec, int n)
{
	static bool seen[MAX];
	int i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < n; i++) {
		if (rec[i].key >= (__u64)n || seen[rec[i].key] ||
		    rec[i].generation != reg[rec[i].key].generation)
			return false;
		seen[rec[i].key] = true;
	}
	return true;
}

TEST_F(batch, f6_read_takes_all_in_one_call)
{
	static struct spottimer_register reg[MAX];
	static struct spottimer_record rec[MAX + 1];

	ASSERT_TRUE(make_due(self->fd, reg, self->n, 0, 0));
	ASSERT_EQ(self->n, read_records(self->fd, rec, MAX + 1));
	EXPECT_TRUE(is_complete(reg, rec, self->n));
	EXPECT_TRUE(nothing(self->fd));
}

TEST_F(batch, f6_read_takes_all_by_short_buffers)
{
	static const int size[] = { 1, 7, 16, 17, 33 };
	static struct spottimer_register reg[MAX];
	static struct spottimer_record rec[MAX + 64];
	const int whole = sizeof(rec[0]);
	int n = self->n, got = 0, i, fit;

	ASSERT_TRUE(make_due(self->fd, reg, n, 0, 0));
	for (i = 0; got < n; i++) {
		fit = size[i % ARRAY_LEN(size)];
		/* and some bytes, which are not enough for another one */
		ASSERT_EQ((fit < n - got ? fit : n - got) * whole,
			  read(self->fd, &rec[got],
			       fit * whole + i % whole));
		got += fit;
	}
	EXPECT_TRUE(is_complete(reg, rec, n));
	EXPECT_TRUE(nothing(self->fd));
}

TEST_HARNESS_MAIN
