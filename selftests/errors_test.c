// SPDX-License-Identifier: GPL-2.0
/*
 * What is handed in: the layout and the sizes of the structures (contract H1),
 * every error of the table in the header, in a call in which all else is valid,
 * and that a refusal has changed nothing (H2).
 *
 * EAGAIN, EINTR of read and EFAULT of read are in read_test.c, EINPROGRESS and
 * EINTR of cancel in cancel_test.c, ENOSPC and ENOMEM in limits_test.c.
 */
#include "spottimer_test.h"

#include <assert.h>
#include <linux/capability.h>

/*
 * The layout: programs of 32 and of 64 bits, and those that were built long ago,
 * have to mean the same. So it is written down here in numbers.
 */
#define SIZE(type, size)						\
	static_assert(sizeof(struct spottimer_##type) == (size), #type)
#define AT(type, member, offset)					\
	static_assert(offsetof(struct spottimer_##type, member) == (offset), \
		      #type "." #member)

SIZE(info, 48);
AT(info, features, 0);
AT(info, tick_ns, 8);
AT(info, max_timers, 16);
AT(info, max_user_timers, 24);
AT(info, clocks, 32);
AT(info, record_size, 36);
AT(info, ended, 40);
AT(info, reserved, 44);

SIZE(batch, 24);
AT(batch, entries, 0);
AT(batch, count, 8);
AT(batch, stride, 12);
AT(batch, flags, 16);
AT(batch, reserved, 20);

SIZE(register, 88);
AT(register, key, 0);
AT(register, generation, 8);
AT(register, first, 16);
AT(register, period, 24);
AT(register, slack, 32);
AT(register, cookie, 40);
AT(register, owner, 48);
AT(register, epoch, 56);
AT(register, clock, 64);
AT(register, policy, 68);
AT(register, max_catch_up, 72);
AT(register, flags, 76);
AT(register, error, 80);
AT(register, reserved, 84);

SIZE(cancel, 48);
AT(cancel, key, 0);
AT(cancel, generation, 8);
AT(cancel, started, 16);
AT(cancel, cancelled, 24);
AT(cancel, flags, 32);
AT(cancel, error, 36);
AT(cancel, result, 40);
AT(cancel, reserved, 44);

SIZE(complete, 32);
AT(complete, key, 0);
AT(complete, generation, 8);
AT(complete, result, 16);
AT(complete, error, 20);
AT(complete, flags, 24);
AT(complete, reserved, 28);

SIZE(lease, 40);
AT(lease, owner, 0);
AT(lease, epoch, 8);
AT(lease, deadline, 16);
AT(lease, op, 24);
AT(lease, flags, 28);
AT(lease, error, 32);
AT(lease, reserved, 36);

SIZE(query, 88);
AT(query, key, 0);
AT(query, generation, 8);
AT(query, cookie, 16);
AT(query, owner, 24);
AT(query, started, 32);
AT(query, scheduled, 40);
AT(query, remaining, 48);
AT(query, period, 56);
AT(query, state, 64);
AT(query, policy, 68);
AT(query, flags, 72);
AT(query, error, 76);
AT(query, result, 80);
AT(query, reserved, 84);

SIZE(record, 64);
AT(record, key, 0);
AT(record, generation, 8);
AT(record, delivery_index, 16);
AT(record, scheduled_index, 24);
AT(record, skipped_ticks, 32);
AT(record, cookie, 40);
AT(record, owner, 48);
AT(record, flags, 56);
AT(record, result, 60);

static_assert(SPOTTIMER_IOC_INFO == 0x8030bb00, "INFO");
static_assert(SPOTTIMER_IOC_REGISTER == 0x4018bb01, "REGISTER");
static_assert(SPOTTIMER_IOC_CANCEL == 0x4018bb02, "CANCEL");
static_assert(SPOTTIMER_IOC_COMPLETE == 0x4018bb03, "COMPLETE");
static_assert(SPOTTIMER_IOC_LEASE == 0x4018bb04, "LEASE");
static_assert(SPOTTIMER_IOC_QUERY == 0x4018bb05, "QUERY");

/*
 * A context in which every operation has something that it could change.
 */

#define KEY	1	/* has a timer, an hour away */
#define FREE	2	/* has none */
#define OWNER	3	/* has a lease of epoch 5 */
#define RUNS	4	/* has a handler that runs */
#define READY	5	/* has a record that waits */

static int make_context(void)
{
	struct spottimer_register reg = timer_once(KEY, HOUR);
	struct spottimer_record rec;
	int fd = spot_open(O_NONBLOCK);

	reg.period = SEC;
	reg.cookie = 123;
	reg.owner = OWNER;
	reg.epoch = 5;
	if (fd >= 0 && !lease_grant(fd, OWNER, 5, HOUR) &&
	    !spot_register(fd, &reg) &&
	    arm_once(fd, RUNS, 0, SPOTTIMER_REG_MANUAL) && !take(fd, &rec) &&
	    arm_once(fd, READY, 0, 0) &&
	    wait_state(fd, READY, 0, SPOTTIMER_READY))
		return fd;
	close(fd);
	return -1;
}

/* What can be seen of that context. */
struct snapshot {
	__s64 begin;
	__s64 end;
	char counts[400];
	int lease;
	struct spottimer_query query[4];
};

static struct snapshot snapshot(int fd)
{
	static const __u64 key[] = { KEY, FREE, RUNS, READY };
	struct snapshot s;
	char line[80];
	unsigned int i;
	FILE *file;

	memset(&s, 0, sizeof(s));
	s.begin = now();
	for (i = 0; i < ARRAY_LEN(key); i++)
		s.query[i] = query(fd, key[i], 0);
	s.lease = lease_renew(fd, OWNER, 5, HOUR);
	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", fd);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file) &&
	       strncmp(line, "next:", 5))
		strncat(s.counts, line, sizeof(s.counts) - 1 - strlen(s.counts));
	if (file)
		fclose(file);
	s.end = now();
	return s;
}

/* Returns a description of what differs. A deadline has to stay where it is. */
static const char *changed(struct snapshot *from, struct snapshot *to)
{
	static char text[60];
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(to->query); i++) {
		__s64 passed = from->query[i].remaining -
			       to->query[i].remaining;

		if (passed < 0 || passed > to->end - from->begin)
			return "a deadline";
		to->query[i].remaining = from->query[i].remaining;
		if (memcmp(&from->query[i], &to->query[i],
			   sizeof(to->query[i]))) {
			snprintf(text, sizeof(text), "timer %llu",
				 (unsigned long long)to->query[i].key);
			return text;
		}
	}
	if (from->lease != to->lease)
		return "the lease";
	if (!*to->counts || strcmp(from->counts, to->counts))
		return "what fdinfo counts";
	return "";
}

#define EXPECT_REFUSED(error, call) do {				\
	struct snapshot before_ = snapshot(self->fd), after_;		\
									\
	EXPECT_EQ(error, call);						\
	after_ = snapshot(self->fd);					\
	EXPECT_STREQ("", changed(&before_, &after_));			\
} while (0)

FIXTURE(errors) {
	int fd;
	__u64 generation;
};

FIXTURE_SETUP(errors)
{
	self->fd = make_context();
	ASSERT_LE(0, self->fd);
	self->generation = query(self->fd, KEY, 0).generation;
	ASSERT_NE(0, self->generation);
}

FIXTURE_TEARDOWN(errors)
{
	close(self->fd);
}

/*
 * The ioctls that take entries, and for each an entry that has an effect.
 */

union entry {
	struct spottimer_register reg;
	struct spottimer_cancel cancel;
	struct spottimer_complete complete;
	struct spottimer_lease lease;
	struct spottimer_query query;
	unsigned char bytes[512];
};

#define CALL(cmd, type)							\
	{ cmd, sizeof(struct type), offsetof(struct type, error) }

static const struct call {
	unsigned int cmd;
	size_t size;
	size_t error;
} calls[] = {
	CALL(SPOTTIMER_IOC_REGISTER, spottimer_register),
	CALL(SPOTTIMER_IOC_CANCEL, spottimer_cancel),
	CALL(SPOTTIMER_IOC_COMPLETE, spottimer_complete),
	CALL(SPOTTIMER_IOC_LEASE, spottimer_lease),
	CALL(SPOTTIMER_IOC_QUERY, spottimer_query),
};

static void fill_entry(union entry *entry, unsigned int cmd)
{
	memset(entry, 0, sizeof(*entry));
	switch (cmd) {
	case SPOTTIMER_IOC_REGISTER:
		entry->reg = timer_once(FREE, HOUR);
		break;
	case SPOTTIMER_IOC_CANCEL:
		entry->cancel.key = KEY;
		break;
	case SPOTTIMER_IOC_COMPLETE:
		entry->complete.key = RUNS;
		break;
	case SPOTTIMER_IOC_LEASE:
		entry->lease.owner = OWNER;
		entry->lease.epoch = 5;
		entry->lease.op = SPOTTIMER_LEASE_REVOKE;
		break;
	case SPOTTIMER_IOC_QUERY:
		entry->query.key = KEY;
		break;
	}
}

static __s32 entry_error(const void *entry, const struct call *call)
{
	__s32 error;

	memcpy(&error, entry + call->error, sizeof(error));
	return error;
}

static int call_ioctl(int fd, unsigned int cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

/* The ioctl of the same number with another size of its argument. */
static unsigned int resized(unsigned int cmd, size_t size)
{
	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

/*
 * H1: every structure with another size than it has. The size is told by the
 * number of the ioctl, by the stride, or by the length of a read.
 */

enum way { BY_IOCTL, BY_STRIDE, BY_LENGTH };

FIXTURE(sized) {
	int fd;
};

FIXTURE_VARIANT(sized) {
	enum way way;
	size_t size;
	const struct call *call;
};

FIXTURE_VARIANT_ADD(sized, info) {
	.way = BY_IOCTL,
	.size = sizeof(struct spottimer_info),
};

FIXTURE_VARIANT_ADD(sized, record) {
	.way = BY_LENGTH,
	.size = sizeof(struct spottimer_record),
};

#define ENTRY(nr, type)							\
	{ .way = BY_STRIDE, .size = sizeof(struct type), .call = &calls[nr] }

FIXTURE_VARIANT_ADD(sized, register) ENTRY(0, spottimer_register);
FIXTURE_VARIANT_ADD(sized, cancel) ENTRY(1, spottimer_cancel);
FIXTURE_VARIANT_ADD(sized, complete) ENTRY(2, spottimer_complete);
FIXTURE_VARIANT_ADD(sized, lease) ENTRY(3, spottimer_lease);
FIXTURE_VARIANT_ADD(sized, query) ENTRY(4, spottimer_query);

#define BATCH(nr)							\
	{ .way = BY_IOCTL, .size = sizeof(struct spottimer_batch),	\
	  .call = &calls[nr] }

FIXTURE_VARIANT_ADD(sized, batch_of_register) BATCH(0);
FIXTURE_VARIANT_ADD(sized, batch_of_cancel) BATCH(1);
FIXTURE_VARIANT_ADD(sized, batch_of_complete) BATCH(2);
FIXTURE_VARIANT_ADD(sized, batch_of_lease) BATCH(3);
FIXTURE_VARIANT_ADD(sized, batch_of_query) BATCH(4);

enum { GUARD = 64, LONGEST = 4096 };

/*
 * A structure at a place that is surrounded by what is to stay as it is. If it
 * is a batch, its entry is in another place.
 */
struct trial {
	enum way way;
	size_t size;
	const struct call *call;
	unsigned char before[GUARD];
	unsigned char at[LONGEST];
	unsigned char after[GUARD];
	union entry entry;
};

static struct trial trial;

FIXTURE_SETUP(sized)
{
	trial.way = variant->way;
	trial.size = variant->size;
	trial.call = variant->call;
	self->fd = make_context();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(sized)
{
	close(self->fd);
}

/* Make one of @size bytes, what is unknown of it zeroed. */
static void trial_begin(struct trial *t, size_t size)
{
	memset(t->before, 0xaa, sizeof(t->before));
	memset(t->at, 0xaa, sizeof(t->at));
	memset(t->after, 0xaa, sizeof(t->after));
	if (!t->call)
		return;
	memset(t->at, 0, size);
	fill_entry(&t->entry, t->call->cmd);
	if (t->way == BY_STRIDE) {
		memcpy(t->at, &t->entry, t->size);
	} else {
		struct spottimer_batch batch = {
			.entries = (uintptr_t)&t->entry,
			.count = 1,
			.stride = t->call->size,
		};

		memcpy(t->at, &batch, sizeof(batch));
	}
}

/* Hand it in as one of @size bytes. Returns the error, of whatever it is. */
static int trial_run(struct trial *t, int fd, size_t size)
{
	unsigned int cmd = t->call ? t->call->cmd : SPOTTIMER_IOC_INFO;
	int ret, done;

	switch (t->way) {
	case BY_STRIDE:
		ret = spot_batch(fd, cmd, t->at, 1, size);
		return ret == 1 ? entry_error(t->at, t->call) : ret;
	case BY_IOCTL:
		ret = call_ioctl(fd, resized(cmd, size), t->at);
		done = t->call ? 1 : 0;
		break;
	default:
		ret = read(fd, t->at, size);
		if (ret < 0)
			ret = -errno;
		done = t->size;
		break;
	}
	if (ret < 0)
		return ret;
	return ret == done ? 0 : -EPROTO;
}

/* Whether all of @n bytes are @value. */
static bool all_bytes(const unsigned char *at, unsigned char value, size_t n)
{
	while (n && *at == value) {
		at++;
		n--;
	}
	return !n;
}

/* Whether nothing was written but those @size bytes. */
static bool trial_guarded(const struct trial *t, size_t size)
{
	return all_bytes(t->before, 0xaa, GUARD) &&
	       all_bytes(t->at + size, 0xaa, LONGEST - size) &&
	       all_bytes(t->after, 0xaa, GUARD);
}

TEST_F(sized, h1_h2_a_shorter_one_is_refused)
{
	static struct trial before;
	size_t size;

	for (size = 0; size < variant->size; size++) {
		/* there is more, but it is not said */
		trial_begin(&trial, variant->size);
		before = trial;
		EXPECT_REFUSED(-EINVAL, trial_run(&trial, self->fd, size));
		EXPECT_EQ(0, memcmp(&before, &trial, sizeof(trial)));
	}
}

TEST_F(sized, h1_h2_what_is_not_known_of_a_longer_one_is_refused)
{
	const size_t known = variant->size;
	const size_t size[] = { known + 1, known + 8, known + 16, LONGEST };
	static struct trial before;
	unsigned int i;
	size_t at;

	if (!variant->call)
		SKIP(return, "nothing of it is an input");
	for (i = 0; i < ARRAY_LEN(size); i++) {
		/* an error of another kind, see below */
		if (variant->way == BY_STRIDE && size[i] % 8)
			continue;
		for (at = known; at < size[i]; at++) {
			/* in the longest one it is at both ends */
			if (at == known + 16)
				at = size[i] - 1;
			trial_begin(&trial, size[i]);
			trial.at[at] = 0x80;
			before = trial;
			EXPECT_REFUSED(-E2BIG, trial_run(&trial, self->fd,
							 size[i]));
			/* nothing is written but that */
			if (variant->way == BY_STRIDE)
				memcpy(before.at + variant->call->error,
				       &(__s32){ -E2BIG }, sizeof(__s32));
			EXPECT_EQ(0, memcmp(&before, &trial, sizeof(trial)));
		}
	}
}

TEST_F(sized, h1_a_longer_one_is_accepted)
{
	const size_t known = variant->size;
	const size_t size[] = {
		known, known + 1, known + 8, known + 24, 1024, LONGEST,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(size); i++) {
		trial_begin(&trial, size[i]);
		if (variant->way == BY_STRIDE && size[i] % 8) {
			EXPECT_REFUSED(-EINVAL, trial_run(&trial, self->fd,
							  size[i]));
			continue;
		}
		EXPECT_EQ(0, trial_run(&trial, self->fd, size[i])) {
			TH_LOG("%zu bytes", size[i]);
		}
		EXPECT_TRUE(trial_guarded(&trial, size[i]));
		/* the rest is zero, but of a buffer it is not written at all */
		EXPECT_TRUE(all_bytes(trial.at + known,
				      variant->way == BY_LENGTH ? 0xaa : 0,
				      size[i] - known));
		if (variant->call && variant->way == BY_IOCTL)
			EXPECT_EQ(0, entry_error(&trial.entry, variant->call));
		/* it had its effect, so take a new one */
		close(self->fd);
		self->fd = make_context();
		ASSERT_LE(0, self->fd);
	}
}

TEST_F(errors, h1_records_are_written_whole_and_not_beyond)
{
	enum { N = 4 };
	struct {
		struct spottimer_record rec[N];
		unsigned char rest[sizeof(struct spottimer_record) - 1];
		unsigned char guard[GUARD];
	} buffer;
	size_t size = offsetof(__typeof__(buffer), guard);
	int i;

	for (i = 1; i <= N; i++) {
		ASSERT_NE(0, arm_once(self->fd, 10 + i, 0, 0));
		ASSERT_TRUE(wait_state(self->fd, 10 + i, 0, SPOTTIMER_READY));
	}
	/* there are five, and there is room for four and almost another one */
	memset(&buffer, 0xaa, sizeof(buffer));
	EXPECT_EQ(sizeof(buffer.rec), read(self->fd, &buffer, size));
	EXPECT_TRUE(all_bytes(buffer.rest, 0xaa,
			      sizeof(buffer.rest) + sizeof(buffer.guard)));
	/* there is one, and there is room for all */
	memset(&buffer, 0xaa, sizeof(buffer));
	EXPECT_EQ(1, read_records(self->fd, buffer.rec, N));
	EXPECT_TRUE(all_bytes((void *)&buffer.rec[1], 0xaa,
			      sizeof(buffer) - sizeof(buffer.rec[0])));
}

/* Of an entry only what is an output is written. */
TEST_F(errors, h1_what_is_an_input_stays)
{
	union entry entry, before;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		fill_entry(&entry, calls[i].cmd);
		memset(entry.bytes + calls[i].size, 0xaa,
		       sizeof(entry) - calls[i].size);
		before = entry;
		ASSERT_EQ(1, spot_batch(self->fd, calls[i].cmd, &entry, 1,
					calls[i].size));
		EXPECT_EQ(0, entry_error(&entry, &calls[i]));
		switch (calls[i].cmd) {
		case SPOTTIMER_IOC_REGISTER:
			before.reg.generation = entry.reg.generation;
			break;
		case SPOTTIMER_IOC_CANCEL:
			before.cancel.generation = entry.cancel.generation;
			before.cancel.cancelled = 1;
			break;
		case SPOTTIMER_IOC_QUERY:
			/* it has these inputs, and was cancelled above */
			EXPECT_EQ(KEY, entry.query.key);
			EXPECT_EQ(0, entry.query.flags);
			EXPECT_EQ(0, entry.query.reserved);
			memcpy(&before, &entry, sizeof(entry.query));
			break;
		}
		EXPECT_EQ(0, memcmp(&before, &entry, sizeof(entry)));
	}
}

TEST_F(errors, h1_entries_of_a_batch_may_differ_in_what_is_not_known)
{
	struct {
		struct spottimer_register reg;
		__u64 tail[3];
	} entry[4];
	int i;

	memset(entry, 0, sizeof(entry));
	for (i = 0; i < 4; i++) {
		entry[i].reg = timer_once(10 + i, HOUR);
		entry[i].reg.error = 1;
	}
	entry[2].tail[1] = 1;
	ASSERT_EQ(4, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, entry, 4,
				sizeof(entry[0])));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i == 2 ? -E2BIG : 0, entry[i].reg.error);
		EXPECT_EQ(i == 2 ? -ENOENT : 0,
			  query(self->fd, 10 + i, 0).error);
		EXPECT_EQ(i == 2, entry[i].tail[1]);
	}
}

/*
 * EINVAL: entries with one thing wrong in them. One member of an entry is
 * overwritten for the time of a call.
 */
struct wrong {
	const char *what;
	void *member;
	size_t size;
	__s64 value;
};

#define WRONG(member, value)						\
	{ #member " = " #value, &(member), sizeof(member), (value) }

/* Returns a description of the last one that was not refused as it must be. */
static const char *try_wrong(int fd, unsigned int cmd, void *entry,
			     size_t size, size_t error_offset,
			     const struct wrong *wrong, size_t wrong_size)
{
	struct snapshot before = snapshot(fd), after;
	unsigned char valid[256], bad[256];
	static char text[160];
	const char *change;
	size_t i;
	int ret;

	text[0] = 0;
	memcpy(valid, entry, size);
	for (i = 0; i < wrong_size / sizeof(*wrong); i++) {
		/* little-endian, as all that this is run on */
		memcpy(wrong[i].member, &wrong[i].value, wrong[i].size);
		memcpy(bad, entry, size);
		memcpy(bad + error_offset, &(__s32){ -EINVAL }, 4);
		ret = spot_batch(fd, cmd, entry, 1, size);
		after = snapshot(fd);
		change = changed(&before, &after);
		if (ret != 1 || memcmp(bad, entry, size) || *change)
			snprintf(text, sizeof(text),
				 "%s: returned %d, not EINVAL alone; changed: %s",
				 wrong[i].what, ret, change);
		memcpy(entry, valid, size);
	}
	return text;
}

#define EXPECT_INVALID(cmd, entry, wrong)				\
	EXPECT_STREQ("", try_wrong(self->fd, cmd, &(entry),		\
				   sizeof(entry),			\
				   offsetof(__typeof__(entry), error),	\
				   wrong, sizeof(wrong)))

TEST_F(errors, h2_case8_einval_register)
{
	struct spottimer_register reg;
	int i;
	const struct wrong wrong[] = {
		WRONG(reg.first, -1),
		WRONG(reg.first, INT64_MIN),
		WRONG(reg.period, -1),
		WRONG(reg.period, INT64_MIN),
		WRONG(reg.slack, -1),
		WRONG(reg.clock, CLOCK_TAI + 1),
		WRONG(reg.clock, 31),
		WRONG(reg.clock, 32),
		WRONG(reg.clock, UINT32_MAX),
		WRONG(reg.policy, 3),
		WRONG(reg.policy, UINT32_MAX),
		WRONG(reg.flags, 1U << 5),
		WRONG(reg.flags, 1U << 31),
		WRONG(reg.reserved, 1),
		WRONG(reg.reserved, UINT32_MAX),
		WRONG(reg.epoch, 1),
	};

	for (i = 0; i < 3; i++) {
		reg = timer_once(i == 1 ? FREE : KEY, HOUR);
		if (i == 2)
			reg = timer_every(KEY, now() + HOUR, SEC);
		EXPECT_INVALID(SPOTTIMER_IOC_REGISTER, reg, wrong);
	}
}

TEST_F(errors, h2_einval_register_what_contradicts_itself)
{
	struct spottimer_register reg = timer_once(FREE, HOUR);
	const struct wrong wrong[] = {
		WRONG(reg.flags, SPOTTIMER_REG_EXCL | SPOTTIMER_REG_REARM),
	};
	const struct wrong wrong_exclusive[] = {
		WRONG(reg.generation, 1),
	};
	const struct wrong wrong_owned[] = {
		WRONG(reg.owner, 0),
		WRONG(reg.epoch, 0),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_REGISTER, reg, wrong);
	reg.flags = SPOTTIMER_REG_EXCL;
	EXPECT_INVALID(SPOTTIMER_IOC_REGISTER, reg, wrong_exclusive);
	reg.flags = 0;
	reg.owner = OWNER;
	reg.epoch = 5;
	EXPECT_INVALID(SPOTTIMER_IOC_REGISTER, reg, wrong_owned);
}

TEST_F(errors, h2_einval_register_catch_up)
{
	struct spottimer_register reg = timer_once(FREE, HOUR);
	const struct wrong wrong[] = {
		WRONG(reg.max_catch_up, 1U << 31),
		WRONG(reg.max_catch_up, UINT32_MAX),
	};

	reg.policy = SPOTTIMER_CATCH_UP;
	EXPECT_INVALID(SPOTTIMER_IOC_REGISTER, reg, wrong);

	/* the largest that is valid; and to other policies it does not matter */
	reg.key = 10;
	reg.max_catch_up = INT_MAX;
	EXPECT_EQ(0, spot_register(self->fd, &reg));
	reg = timer_once(10, HOUR);
	reg.max_catch_up = UINT32_MAX;
	EXPECT_EQ(0, spot_register(self->fd, &reg));
	reg = timer_once(10, HOUR);
	reg.policy = SPOTTIMER_DELAY_NEXT;
	reg.max_catch_up = 1U << 31;
	EXPECT_EQ(0, spot_register(self->fd, &reg));
}

TEST_F(errors, h2_einval_cancel)
{
	struct spottimer_cancel one = { .key = KEY };
	struct spottimer_cancel all = { .flags = SPOTTIMER_CANCEL_ALL };
	struct spottimer_cancel owner = {
		.key = OWNER,
		.flags = SPOTTIMER_CANCEL_OWNER,
	};
	const struct wrong wrong[] = {
		WRONG(one.flags, 1U << 3),
		WRONG(one.flags, 1U << 31),
		WRONG(one.reserved, 1),
		WRONG(one.reserved, UINT32_MAX),
		WRONG(one.flags, SPOTTIMER_CANCEL_OWNER | SPOTTIMER_CANCEL_ALL),
	};
	const struct wrong wrong_all[] = {
		WRONG(all.key, 1),
		WRONG(all.generation, 1),
		WRONG(all.reserved, 1),
	};
	const struct wrong wrong_owner[] = {
		WRONG(owner.key, 0),
		WRONG(owner.generation, 1),
		WRONG(owner.reserved, 1),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_CANCEL, one, wrong);
	EXPECT_INVALID(SPOTTIMER_IOC_CANCEL, all, wrong_all);
	EXPECT_INVALID(SPOTTIMER_IOC_CANCEL, owner, wrong_owner);
}

TEST_F(errors, h2_einval_complete)
{
	struct spottimer_complete entry = { .key = RUNS };
	const struct wrong wrong[] = {
		WRONG(entry.result, 1),
		WRONG(entry.result, INT_MAX),
		WRONG(entry.result, -4096),
		WRONG(entry.result, INT_MIN),
		WRONG(entry.flags, 1),
		WRONG(entry.flags, 1U << 31),
		WRONG(entry.reserved, 1),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_COMPLETE, entry, wrong);
	EXPECT_EQ(0, spot_complete(self->fd, &entry));
}

TEST_F(errors, h2_einval_lease)
{
	struct spottimer_lease entry = {
		.owner = OWNER,
		.epoch = 6,
		.deadline = HOUR,
		.op = SPOTTIMER_LEASE_GRANT,
	};
	const struct wrong wrong[] = {
		WRONG(entry.owner, 0),
		WRONG(entry.epoch, 0),
		WRONG(entry.deadline, 0),
		WRONG(entry.deadline, -1),
		WRONG(entry.deadline, INT64_MIN),
		WRONG(entry.op, 3),
		WRONG(entry.op, UINT32_MAX),
		WRONG(entry.flags, 1U << 3),
		WRONG(entry.flags, 1U << 31),
		WRONG(entry.flags, SPOTTIMER_LEASE_FORGET),
		WRONG(entry.reserved, 1),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong);
	entry.epoch = 5;
	entry.op = SPOTTIMER_LEASE_RENEW;
	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong);
}

TEST_F(errors, h2_einval_lease_deadline_that_has_passed)
{
	struct spottimer_lease entry = {
		.owner = OWNER,
		.epoch = 6,
		.deadline = now_on(CLOCK_BOOTTIME) + HOUR,
		.op = SPOTTIMER_LEASE_GRANT,
		.flags = SPOTTIMER_LEASE_ABSTIME,
	};
	const struct wrong wrong[] = {
		WRONG(entry.deadline, 0),
		WRONG(entry.deadline, 1),
		WRONG(entry.deadline, -1),
		WRONG(entry.deadline, now_on(CLOCK_BOOTTIME) - MSEC),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong);
	entry.epoch = 5;
	entry.op = SPOTTIMER_LEASE_RENEW;
	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong);
}

TEST_F(errors, h2_einval_lease_flags_of_another_operation)
{
	struct spottimer_lease entry = {
		.owner = OWNER,
		.epoch = 5,
		.deadline = HOUR,
		.op = SPOTTIMER_LEASE_RENEW,
	};
	const struct wrong wrong_renew[] = {
		WRONG(entry.flags, SPOTTIMER_LEASE_ADOPT),
		WRONG(entry.flags, SPOTTIMER_LEASE_FORGET),
	};
	const struct wrong wrong_revoke[] = {
		WRONG(entry.flags, SPOTTIMER_LEASE_ADOPT),
		WRONG(entry.deadline, 1),
		WRONG(entry.deadline, HOUR),
		WRONG(entry.reserved, 1),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong_renew);
	entry.op = SPOTTIMER_LEASE_REVOKE;
	entry.deadline = 0;
	EXPECT_INVALID(SPOTTIMER_IOC_LEASE, entry, wrong_revoke);
}

TEST_F(errors, h2_einval_query)
{
	struct spottimer_query entry = { .key = KEY };
	const struct wrong wrong[] = {
		WRONG(entry.flags, 1),
		WRONG(entry.flags, 1U << 31),
		WRONG(entry.reserved, 1),
	};

	EXPECT_INVALID(SPOTTIMER_IOC_QUERY, entry, wrong);
}

/*
 * What all batches have in common
 */

TEST_F(errors, h2_einval_batch)
{
	union entry entry;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		const __u32 size = calls[i].size;
		const __u64 at = (uintptr_t)&entry;
		struct spottimer_batch wrong[] = {
			{ at, 0, size, 0, 0 },
			{ at, 1U << 31, size, 0, 0 },
			{ at, UINT32_MAX, size, 0, 0 },
			{ at, 1, 0, 0, 0 },
			{ at, 1, size + 4, 0, 0 },
			{ at, 1, 4096 + 8, 0, 0 },
			{ at, 1, UINT32_MAX & ~7U, 0, 0 },
			{ at, 1, size, 1, 0 },
			{ at, 1, size, 1U << 31, 0 },
			{ at, 1, size, 0, 1 },
			{ at, 1, size, 0, UINT32_MAX },
		};

		fill_entry(&entry, calls[i].cmd);
		for (k = 0; k < ARRAY_LEN(wrong); k++)
			EXPECT_REFUSED(-EINVAL, call_ioctl(self->fd,
							   calls[i].cmd,
							   &wrong[k]));
		EXPECT_EQ(0, entry_error(&entry, &calls[i]));
	}
}

/*
 * EFAULT
 */

TEST_F(errors, h2_efault_batch)
{
	char *border = map_border(PROT_NONE);
	struct spottimer_batch *batch;
	union entry entry;
	unsigned int i;

	ASSERT_NE(NULL, border);
	for (i = 0; i < ARRAY_LEN(calls); i++) {
		const unsigned int cmd = calls[i].cmd;

		EXPECT_REFUSED(-EFAULT, call_ioctl(self->fd, cmd, NULL));
		EXPECT_REFUSED(-EFAULT, call_ioctl(self->fd, cmd, border));
		/* half of it can be read */
		fill_entry(&entry, cmd);
		batch = (void *)(border - sizeof(*batch) / 2);
		memcpy(batch, &(__u64){ (uintptr_t)&entry }, 8);
		EXPECT_REFUSED(-EFAULT, call_ioctl(self->fd, cmd, batch));
		EXPECT_EQ(0, entry_error(&entry, &calls[i]));
	}
}

/*
 * Put @n entries into memory whose second page is as @prot says, so that
 * @before of them and @shift bytes come before its beginning.
 */
static void *place(const void *entries, size_t size, int n, int before,
		   int shift, int prot)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *border = map_border(PROT_READ | PROT_WRITE), *at;

	if (!border)
		return NULL;
	at = border - before * size - shift;
	memcpy(at, entries, n * size);
	return mprotect(border, page, prot) ? NULL : at;
}

TEST_F(errors, h2_efault_first_entry)
{
	static const int prot[] = { PROT_NONE, PROT_READ };
	union entry entry;
	unsigned int i, k;
	void *at;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		const unsigned int cmd = calls[i].cmd;
		const size_t size = calls[i].size;

		fill_entry(&entry, cmd);
		for (k = 0; k < ARRAY_LEN(prot); k++) {
			at = place(&entry, size, 1, 0, 0, prot[k]);
			ASSERT_NE(NULL, at);
			EXPECT_REFUSED(-EFAULT, spot_batch(self->fd, cmd, at,
							   1, size));
			/* across the border, just the error cannot be written */
			at = place(&entry, size, 1, 0, calls[i].error & ~7UL,
				   prot[k]);
			ASSERT_NE(NULL, at);
			EXPECT_REFUSED(-EFAULT, spot_batch(self->fd, cmd, at,
							   1, size));
		}
		EXPECT_REFUSED(-EFAULT, spot_batch(self->fd, cmd, NULL, 1,
						   size));
		/* where the address space ends */
		at = (void *)-size;
		EXPECT_REFUSED(-EFAULT, spot_batch(self->fd, cmd, at, 1, size));
		at = (void *)-(size / 2 & ~7UL);
		EXPECT_REFUSED(-EFAULT, spot_batch(self->fd, cmd, at, 9, size));
	}
}

/*
 * A fault at a later entry: those before it are worked, and their number is
 * returned. With the border at an entry and across one; the memory beyond is
 * not there, or cannot be written.
 */
FIXTURE(fault) {
	int fd;
	int shift;
};

FIXTURE_VARIANT(fault) {
	int prot;
	bool across;
};

FIXTURE_VARIANT_ADD(fault, none) {
	.prot = PROT_NONE,
};

FIXTURE_VARIANT_ADD(fault, none_across) {
	.prot = PROT_NONE,
	.across = true,
};

FIXTURE_VARIANT_ADD(fault, read_only) {
	.prot = PROT_READ,
};

FIXTURE_VARIANT_ADD(fault, read_only_across) {
	.prot = PROT_READ,
	.across = true,
};

FIXTURE_SETUP(fault)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	self->shift = variant->across ? 16 : 0;
}

FIXTURE_TEARDOWN(fault)
{
	close(self->fd);
}

enum { FAULT_N = 5, FAULT_AT = 3 };

static int fault_batch(int fd, unsigned int cmd, const void *entries,
		       size_t size, int shift, int prot, __u32 count)
{
	void *at = place(entries, size, FAULT_N, FAULT_AT, shift, prot);

	return at ? spot_batch(fd, cmd, at, count, size) : -ENOMEM;
}

#define FAULT_BATCH(cmd, entries)					\
	fault_batch(self->fd, cmd, entries, sizeof(entries[0]),		\
		    self->shift, variant->prot, FAULT_N)

TEST_F(fault, h2_efault_register_at_a_later_entry)
{
	struct spottimer_register reg[FAULT_N];
	int i;

	for (i = 0; i < FAULT_N; i++)
		reg[i] = timer_once(i, HOUR);
	EXPECT_EQ(FAULT_AT, FAULT_BATCH(SPOTTIMER_IOC_REGISTER, reg));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i < FAULT_AT ? 0 : -ENOENT,
			  query(self->fd, i, 0).error);
}

TEST_F(fault, h2_efault_replace_at_a_later_entry)
{
	struct spottimer_register reg[FAULT_N];
	__u64 generation[FAULT_N];
	int i;

	for (i = 0; i < FAULT_N; i++) {
		generation[i] = arm_once(self->fd, i, HOUR, 0);
		reg[i] = timer_once(i, HOUR);
	}
	EXPECT_EQ(FAULT_AT, FAULT_BATCH(SPOTTIMER_IOC_REGISTER, reg));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i >= FAULT_AT,
			  query(self->fd, i, 0).generation == generation[i]);
}

TEST_F(fault, h2_efault_cancel_at_a_later_entry)
{
	struct spottimer_cancel c[FAULT_N];
	__u64 generation[FAULT_N];
	int i;

	memset(c, 0, sizeof(c));
	for (i = 0; i < FAULT_N; i++) {
		generation[i] = arm_once(self->fd, i, HOUR, 0);
		c[i].key = i;
	}
	EXPECT_EQ(FAULT_AT, FAULT_BATCH(SPOTTIMER_IOC_CANCEL, c));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i < FAULT_AT, is_over(self->fd, i, generation[i]));
}

TEST_F(fault, h2_efault_complete_at_a_later_entry)
{
	struct spottimer_complete entry[FAULT_N];
	struct spottimer_record rec[FAULT_N];
	__u64 generation[FAULT_N];
	int i;

	memset(entry, 0, sizeof(entry));
	for (i = 0; i < FAULT_N; i++) {
		generation[i] = arm_once(self->fd, i, 0, SPOTTIMER_REG_MANUAL);
		entry[i].key = i;
	}
	ASSERT_EQ(FAULT_N, take_all(self->fd, rec, FAULT_N));
	EXPECT_EQ(FAULT_AT, FAULT_BATCH(SPOTTIMER_IOC_COMPLETE, entry));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i < FAULT_AT ? SPOTTIMER_ENDED : SPOTTIMER_RUNNING,
			  query(self->fd, i, generation[i]).state);
}

TEST_F(fault, h2_efault_lease_at_a_later_entry)
{
	struct spottimer_lease entry[FAULT_N];
	int i;

	memset(entry, 0, sizeof(entry));
	for (i = 0; i < FAULT_N; i++) {
		entry[i].owner = i + 1;
		entry[i].epoch = 1;
		entry[i].deadline = HOUR;
	}
	EXPECT_EQ(FAULT_AT, FAULT_BATCH(SPOTTIMER_IOC_LEASE, entry));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i < FAULT_AT ? 0 : -EKEYEXPIRED,
			  lease_renew(self->fd, i + 1, 1, HOUR));
}

TEST_F(fault, h2_efault_in_a_batch_without_an_end)
{
	struct spottimer_register reg[FAULT_N];
	int i;

	for (i = 0; i < FAULT_N; i++)
		reg[i] = timer_once(i, HOUR);
	EXPECT_EQ(FAULT_AT, fault_batch(self->fd, SPOTTIMER_IOC_REGISTER, reg,
					sizeof(reg[0]), self->shift,
					variant->prot, INT_MAX));
	for (i = 0; i < FAULT_N; i++)
		EXPECT_EQ(i < FAULT_AT ? 0 : -ENOENT,
			  query(self->fd, i, 0).error);
}

/*
 * The other errors, once each for every command that has them
 */

TEST_F(errors, h2_enotty)
{
	char arg[256] = { 0 };
	unsigned int nr;

	for (nr = 0x06; nr < 0x100; nr++)
		EXPECT_EQ(-ENOTTY,
			  call_ioctl(self->fd,
				     _IOC(_IOC_WRITE, SPOTTIMER_IOC_MAGIC, nr,
					  sizeof(struct spottimer_batch)),
				     arg));
	EXPECT_REFUSED(-ENOTTY, call_ioctl(self->fd,
					   _IO(SPOTTIMER_IOC_MAGIC, 0x42),
					   NULL));
	EXPECT_REFUSED(-ENOTTY,
		       call_ioctl(self->fd,
				  _IOW(SPOTTIMER_IOC_MAGIC + 1, 0x01,
				       struct spottimer_batch), arg));
	EXPECT_REFUSED(-ENOTTY, call_ioctl(self->fd, TCGETS, arg));
}

TEST_F(errors, h2_eexist)
{
	static const __u64 key[] = { KEY, RUNS, READY };
	struct spottimer_register reg;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(key); i++) {
		reg = timer_once(key[i], HOUR);
		reg.flags = SPOTTIMER_REG_EXCL;
		EXPECT_REFUSED(-EEXIST, spot_register(self->fd, &reg));
	}
}

/* Register under @key with @flags in the place of @generation. */
static int replace(int fd, __u64 key, __u64 generation, __u32 flags)
{
	struct spottimer_register reg = timer_once(key, HOUR);

	reg.generation = generation;
	reg.flags = flags;
	return spot_register(fd, &reg);
}

TEST_F(errors, h2_enoent_register)
{
	EXPECT_REFUSED(-ENOENT, replace(self->fd, FREE, 0,
					SPOTTIMER_REG_REARM));
	EXPECT_REFUSED(-ENOENT, replace(self->fd, FREE, self->generation, 0));
	EXPECT_REFUSED(-ENOENT, replace(self->fd, KEY, self->generation + 1,
					0));
	EXPECT_REFUSED(-ENOENT, replace(self->fd, KEY, UINT64_MAX,
					SPOTTIMER_REG_REARM));
}

TEST_F(errors, h2_enoent_cancel)
{
	EXPECT_REFUSED(-ENOENT, cancel(self->fd, FREE, 0, 0).error);
	EXPECT_REFUSED(-ENOENT, cancel(self->fd, FREE, self->generation,
				       0).error);
	EXPECT_REFUSED(-ENOENT, cancel(self->fd, KEY, self->generation + 1,
				       SPOTTIMER_CANCEL_NOWAIT).error);
}

TEST_F(errors, h2_enoent_complete)
{
	__u64 running = query(self->fd, RUNS, 0).generation;
	__u64 ended = arm_once(self->fd, 10, HOUR, 0);

	EXPECT_EQ(0, cancel(self->fd, 10, 0, 0).error);
	/* no timer, one that waits, whose record does, or that has ended */
	EXPECT_REFUSED(-ENOENT, complete(self->fd, FREE, 0, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, KEY, 0, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, KEY, self->generation, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, READY, 0, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, 10, 0, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, 10, ended, 0));
	EXPECT_REFUSED(-ENOENT, complete(self->fd, RUNS, running + 1, 0));
}

TEST_F(errors, h2_enoent_query)
{
	EXPECT_REFUSED(-ENOENT, query(self->fd, FREE, 0).error);
	EXPECT_REFUSED(-ENOENT, query(self->fd, FREE, self->generation).error);
	EXPECT_REFUSED(-ENOENT, query(self->fd, KEY,
				      self->generation + 1).error);
}

TEST_F(errors, h2_estale_generation)
{
	__u64 old = self->generation;

	ASSERT_EQ(0, replace(self->fd, KEY, 0, 0));
	EXPECT_REFUSED(-ESTALE, replace(self->fd, KEY, old, 0));
	EXPECT_REFUSED(-ESTALE, replace(self->fd, KEY, old,
					SPOTTIMER_REG_REARM));
	EXPECT_REFUSED(-ESTALE, cancel(self->fd, KEY, old, 0).error);
	EXPECT_REFUSED(-ESTALE, cancel(self->fd, KEY, old,
				       SPOTTIMER_CANCEL_NOWAIT).error);
	EXPECT_REFUSED(-ESTALE, complete(self->fd, KEY, old, 0));
	EXPECT_REFUSED(-ESTALE, complete(self->fd, RUNS, 1, 0));
	EXPECT_REFUSED(-ESTALE, query(self->fd, KEY, old).error);
}

/* Register under @key for an owner. */
static int register_owned(int fd, __u64 key, __u64 owner, __u64 epoch)
{
	struct spottimer_register reg = timer_once(key, HOUR);

	reg.owner = owner;
	reg.epoch = epoch;
	return spot_register(fd, &reg);
}

TEST_F(errors, h2_estale_epoch)
{
	EXPECT_REFUSED(-ESTALE, register_owned(self->fd, KEY, OWNER, 4));
	EXPECT_REFUSED(-ESTALE, register_owned(self->fd, FREE, OWNER, 6));
	EXPECT_REFUSED(-ESTALE, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_REFUSED(-ESTALE, lease_grant(self->fd, OWNER, 4, HOUR));
	EXPECT_REFUSED(-ESTALE, lease(self->fd, SPOTTIMER_LEASE_GRANT, OWNER,
				      5, HOUR, SPOTTIMER_LEASE_ADOPT));
	EXPECT_REFUSED(-ESTALE, lease_renew(self->fd, OWNER, 4, HOUR));
	EXPECT_REFUSED(-ESTALE, lease_renew(self->fd, OWNER, 6, HOUR));
	EXPECT_REFUSED(-ESTALE, lease_revoke(self->fd, OWNER, 4, 0));
	EXPECT_REFUSED(-ESTALE, lease_revoke(self->fd, OWNER, 4,
					     SPOTTIMER_LEASE_FORGET));
}

TEST_F(errors, h2_ekeyexpired)
{
	/* an owner that never had a lease, and one whose lease has ended */
	EXPECT_EQ(0, lease_grant(self->fd, OWNER + 1, 1, HOUR));
	EXPECT_EQ(0, lease_revoke(self->fd, OWNER + 1, 1, 0));
	EXPECT_REFUSED(-EKEYEXPIRED, register_owned(self->fd, KEY, 99, 1));
	EXPECT_REFUSED(-EKEYEXPIRED, register_owned(self->fd, FREE, 99, 1));
	EXPECT_REFUSED(-EKEYEXPIRED, register_owned(self->fd, KEY, OWNER + 1,
						    1));
	EXPECT_REFUSED(-EKEYEXPIRED, lease_renew(self->fd, 99, 1, HOUR));
	EXPECT_REFUSED(-EKEYEXPIRED, lease_renew(self->fd, OWNER + 1, 1, HOUR));
	EXPECT_REFUSED(-EKEYEXPIRED, lease_revoke(self->fd, 99, 1, 0));
	EXPECT_REFUSED(-EKEYEXPIRED, lease_revoke(self->fd, OWNER + 1, 1, 0));
	EXPECT_REFUSED(-EKEYEXPIRED, lease_revoke(self->fd, 99, 1,
						  SPOTTIMER_LEASE_FORGET));
}

TEST_F(errors, h2_eopnotsupp)
{
	struct spottimer_register reg = timer_once(KEY, HOUR);
	const __u32 ours = 1 << CLOCK_REALTIME | 1 << CLOCK_MONOTONIC |
			   1 << CLOCK_BOOTTIME;
	struct spottimer_info info;

	for (reg.clock = 0; reg.clock <= CLOCK_TAI; reg.clock++) {
		if (ours & 1 << reg.clock)
			continue;
		reg.key = KEY;
		EXPECT_REFUSED(-EOPNOTSUPP, spot_register(self->fd, &reg));
		reg.key = FREE;
		reg.flags = SPOTTIMER_REG_ABSTIME;
		EXPECT_REFUSED(-EOPNOTSUPP, spot_register(self->fd, &reg));
	}
	/* and it says so */
	ASSERT_EQ(0, spot_info(self->fd, &info));
	EXPECT_EQ(ours, info.clocks);
}

TEST_F(errors, h2_eperm)
{
	EXPECT_EQ(0, replace(self->fd, 10, 0, SPOTTIMER_REG_CRITICAL));
	EXPECT_EQ(0, cancel(self->fd, 10, 0, 0).error);

	/* rights are those of who calls, not of who opened the file */
	ASSERT_EQ(0, have_only(~(1U << CAP_SYS_NICE)));
	EXPECT_REFUSED(-EPERM, replace(self->fd, FREE, 0,
				       SPOTTIMER_REG_CRITICAL));
	EXPECT_REFUSED(-EPERM, replace(self->fd, KEY, 0,
				       SPOTTIMER_REG_CRITICAL));
	EXPECT_EQ(0, replace(self->fd, FREE, 0, 0));
}

TEST_F(errors, h2_efault_info)
{
	char *border = map_border(PROT_READ);

	ASSERT_NE(NULL, border);
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, SPOTTIMER_IOC_INFO, NULL));
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, SPOTTIMER_IOC_INFO, border));
	EXPECT_EQ(-EFAULT, call_ioctl(self->fd, SPOTTIMER_IOC_INFO,
				      border - 16));
}

TEST_F(errors, h1_info)
{
	struct spottimer_info info;

	memset(&info, 0xaa, sizeof(info));
	ASSERT_EQ(0, spot_info(self->fd, &info));
	EXPECT_EQ(0, info.features);
	EXPECT_EQ(read_param("tick_ns"), info.tick_ns);
	EXPECT_EQ(read_param("max_timers"), info.max_timers);
	EXPECT_EQ(read_param("max_user_timers"), info.max_user_timers);
	EXPECT_EQ(sizeof(struct spottimer_record), info.record_size);
	EXPECT_LT(0, info.ended);
	EXPECT_EQ(0, info.reserved);
}

TEST_HARNESS_MAIN
