// SPDX-License-Identifier: GPL-2.0
/*
 * Every error of the table in the header, in a call in which all else is valid;
 * and that a refusal has changed nothing (contract H1, H2).
 *
 * EAGAIN, EINTR of read and EFAULT of read are in read_test.c, EINPROGRESS and
 * EINTR of cancel in cancel_test.c, ENOSPC in register_test.c. ENOMEM is left to
 * fault injection.
 */
#include "spottimer_test.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#define KEY	1	/* has a timer, an hour away */
#define FREE	2	/* has none */
#define OWNER	3	/* has a lease of epoch 5 */

FIXTURE(errors) {
	int fd;
	__u64 generation;
};

FIXTURE_SETUP(errors)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, lease_grant(self->fd, OWNER, 5, HOUR));
	self->generation = arm_once(self->fd, KEY, HOUR, 0);
	ASSERT_NE(0, self->generation);
}

/* Whatever a test does here is refused: all is as it was in the beginning. */
FIXTURE_TEARDOWN(errors)
{
	struct spottimer_query q = query(self->fd, KEY, 0);

	EXPECT_EQ(0, q.error);
	EXPECT_EQ(self->generation, q.generation);
	EXPECT_EQ(SPOTTIMER_PENDING, q.state);
	EXPECT_EQ(-ENOENT, query(self->fd, FREE, 0).error);
	EXPECT_EQ(-ENOENT, query(self->fd, 0, 0).error);
	EXPECT_EQ(0, lease_renew(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(1, cancel(self->fd, 0, 0, SPOTTIMER_CANCEL_ALL).cancelled);
	EXPECT_TRUE(nothing(self->fd));
	close(self->fd);
}

/*
 * Entries with one thing wrong in them: one member of an entry is overwritten
 * for the time of a call, and its error has to be EINVAL.
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
	static char text[120];
	char valid[256];
	__s32 error;
	size_t i;
	int ret;

	text[0] = 0;
	memcpy(valid, entry, size);
	for (i = 0; i < wrong_size / sizeof(*wrong); i++) {
		/* little-endian, as all that this is run on */
		memcpy(wrong[i].member, &wrong[i].value, wrong[i].size);
		ret = spot_batch(fd, cmd, entry, 1, size);
		memcpy(&error, (char *)entry + error_offset, sizeof(error));
		memcpy(entry, valid, size);
		if (ret != 1 || error != -EINVAL)
			snprintf(text, sizeof(text),
				 "%s: returned %d, error %d, not EINVAL",
				 wrong[i].what, ret, error);
	}
	return text;
}

#define EXPECT_INVALID(cmd, entry, wrong)				\
	EXPECT_STREQ("", try_wrong(self->fd, cmd, &(entry),		\
				   sizeof(entry),			\
				   offsetof(__typeof__(entry), error),	\
				   wrong, sizeof(wrong)))

TEST_F(errors, h2_einval_register)
{
	struct spottimer_register reg;
	int i;
	const struct wrong wrong[] = {
		WRONG(reg.first, -1),
		WRONG(reg.first, INT64_MIN),
		WRONG(reg.period, -1),
		WRONG(reg.period, INT64_MIN),
		WRONG(reg.slack, -1),
		WRONG(reg.clock, CLOCK_PROCESS_CPUTIME_ID),
		WRONG(reg.clock, CLOCK_MONOTONIC_RAW),
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
	EXPECT_EQ(0, cancel(self->fd, 10, 0, 0).error);
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
	struct spottimer_complete entry = { .key = 10 };
	struct spottimer_record rec;
	const struct wrong wrong[] = {
		WRONG(entry.result, 1),
		WRONG(entry.result, INT_MAX),
		WRONG(entry.result, -4096),
		WRONG(entry.result, INT_MIN),
		WRONG(entry.flags, 1),
		WRONG(entry.flags, 1U << 31),
		WRONG(entry.reserved, 1),
	};

	ASSERT_NE(0, arm_once(self->fd, 10, 0, SPOTTIMER_REG_MANUAL));
	ASSERT_EQ(0, take(self->fd, &rec));
	EXPECT_INVALID(SPOTTIMER_IOC_COMPLETE, entry, wrong);
	EXPECT_EQ(SPOTTIMER_RUNNING, query(self->fd, 10, 0).state);
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
 * What all batches have in common. The entries would have an effect, were they
 * worked: the fixture would see it in the end.
 */

union entry {
	struct spottimer_register reg;
	struct spottimer_cancel cancel;
	struct spottimer_complete complete;
	struct spottimer_lease lease;
	struct spottimer_query query;
	char bytes[512];
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
	case SPOTTIMER_IOC_LEASE:
		entry->lease.owner = OWNER;
		entry->lease.epoch = 5;
		entry->lease.op = SPOTTIMER_LEASE_REVOKE;
		break;
	case SPOTTIMER_IOC_CANCEL:
	case SPOTTIMER_IOC_COMPLETE:
	case SPOTTIMER_IOC_QUERY:
		entry->query.key = KEY;
		break;
	}
}

static __s32 entry_error(const union entry *entry, const struct call *call)
{
	__s32 error;

	memcpy(&error, entry->bytes + call->error, sizeof(error));
	return error;
}

static int call_ioctl(int fd, unsigned int cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	return ret < 0 ? -errno : ret;
}

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
			{ at, 1, 8, 0, 0 },
			{ at, 1, size - 8, 0, 0 },
			{ at, 1, size - 1, 0, 0 },
			{ at, 1, size + 1, 0, 0 },
			{ at, 1, size + 4, 0, 0 },
			{ at, 1, size, 1, 0 },
			{ at, 1, size, 1U << 31, 0 },
			{ at, 1, size, 0, 1 },
			{ at, 1, size, 0, UINT32_MAX },
		};

		fill_entry(&entry, calls[i].cmd);
		for (k = 0; k < ARRAY_LEN(wrong); k++)
			EXPECT_EQ(-EINVAL, call_ioctl(self->fd, calls[i].cmd,
						      &wrong[k])) {
				TH_LOG("call %u, case %u", i, k);
			}
		EXPECT_EQ(0, entry_error(&entry, &calls[i]));
	}
}

/* The ioctl of the same number with another size of its argument. */
static unsigned int resized(unsigned int cmd, size_t size)
{
	return _IOC(_IOC_DIR(cmd), _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

TEST_F(errors, h2_einval_batch_too_short)
{
	static const size_t size[] = {
		0, 8, 16, sizeof(struct spottimer_batch) - 1,
	};
	struct spottimer_batch batch;
	union entry entry;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		fill_entry(&entry, calls[i].cmd);
		memset(&batch, 0, sizeof(batch));
		batch.entries = (uintptr_t)&entry;
		batch.count = 1;
		batch.stride = calls[i].size;
		for (k = 0; k < ARRAY_LEN(size); k++)
			EXPECT_EQ(-EINVAL,
				  call_ioctl(self->fd, resized(calls[i].cmd,
							       size[k]),
					     &batch));
	}
}

struct longer_batch {
	struct spottimer_batch batch;
	__u64 tail[2];
};

TEST_F(errors, h2_e2big_batch_with_an_unknown_tail)
{
	struct longer_batch longer;
	union entry entry;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		fill_entry(&entry, calls[i].cmd);
		for (k = 0; k < 2; k++) {
			memset(&longer, 0, sizeof(longer));
			longer.batch.entries = (uintptr_t)&entry;
			longer.batch.count = 1;
			longer.batch.stride = calls[i].size;
			longer.tail[k] = 1ULL << 56;
			EXPECT_EQ(-E2BIG,
				  call_ioctl(self->fd, resized(calls[i].cmd,
							       sizeof(longer)),
					     &longer));
		}
	}
}

TEST_F(errors, h2_a_batch_with_a_tail_of_zeroes_is_accepted)
{
	struct spottimer_register reg = timer_once(10, HOUR);
	struct longer_batch longer;

	memset(&longer, 0, sizeof(longer));
	longer.batch.entries = (uintptr_t)&reg;
	longer.batch.count = 1;
	longer.batch.stride = sizeof(reg);
	EXPECT_EQ(1, call_ioctl(self->fd, resized(SPOTTIMER_IOC_REGISTER,
						  sizeof(longer)), &longer));
	EXPECT_EQ(0, reg.error);
	EXPECT_EQ(0, cancel(self->fd, 10, reg.generation, 0).error);
}

TEST_F(errors, h2_e2big_entry_with_an_unknown_tail)
{
	union entry entry;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(calls); i++) {
		static const size_t tail[] = { 8, 16, 256 };

		for (k = 0; k < ARRAY_LEN(tail); k++) {
			size_t size = calls[i].size + tail[k];

			/* its last byte, then its first */
			fill_entry(&entry, calls[i].cmd);
			entry.bytes[size - 1] = 1;
			EXPECT_EQ(1, spot_batch(self->fd, calls[i].cmd, &entry,
						1, size));
			EXPECT_EQ(-E2BIG, entry_error(&entry, &calls[i]));
			fill_entry(&entry, calls[i].cmd);
			entry.bytes[calls[i].size] = 1;
			EXPECT_EQ(1, spot_batch(self->fd, calls[i].cmd, &entry,
						1, size));
			EXPECT_EQ(-E2BIG, entry_error(&entry, &calls[i]));
		}
	}
}

TEST_F(errors, h2_an_entry_with_a_tail_of_zeroes_is_accepted)
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
	/* each for itself */
	entry[2].tail[1] = 1;
	ASSERT_EQ(4, spot_batch(self->fd, SPOTTIMER_IOC_REGISTER, entry, 4,
				sizeof(entry[0])));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i == 2 ? -E2BIG : 0, entry[i].reg.error);
		EXPECT_EQ(i == 2 ? -ENOENT : 0,
			  query(self->fd, 10 + i, 0).error);
		EXPECT_EQ(i == 2, entry[i].tail[1]);
		if (i != 2)
			EXPECT_EQ(0, cancel(self->fd, 10 + i, 0, 0).error);
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
		EXPECT_EQ(-EFAULT, call_ioctl(self->fd, calls[i].cmd, NULL));
		EXPECT_EQ(-EFAULT, call_ioctl(self->fd, calls[i].cmd, border));
		/* half of it can be read */
		fill_entry(&entry, calls[i].cmd);
		batch = (void *)(border - sizeof(*batch) / 2);
		memcpy(batch, &(__u64){ (uintptr_t)&entry }, 8);
		EXPECT_EQ(-EFAULT, call_ioctl(self->fd, calls[i].cmd, batch));
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
		const size_t size = calls[i].size;

		fill_entry(&entry, calls[i].cmd);
		for (k = 0; k < ARRAY_LEN(prot); k++) {
			at = place(&entry, size, 1, 0, 0, prot[k]);
			ASSERT_NE(NULL, at);
			EXPECT_EQ(-EFAULT, spot_batch(self->fd, calls[i].cmd,
						      at, 1, size));
			/* across the border, just the error cannot be written */
			at = place(&entry, size, 1, 0, calls[i].error & ~7UL,
				   prot[k]);
			ASSERT_NE(NULL, at);
			EXPECT_EQ(-EFAULT, spot_batch(self->fd, calls[i].cmd,
						      at, 1, size));
		}
		EXPECT_EQ(-EFAULT, spot_batch(self->fd, calls[i].cmd, NULL, 1,
					      size));
		/* where the address space ends */
		EXPECT_EQ(-EFAULT, spot_batch(self->fd, calls[i].cmd,
					      (void *)-size, 1, size));
		EXPECT_EQ(-EFAULT, spot_batch(self->fd, calls[i].cmd,
					      (void *)-(size / 2 & ~7UL), 9,
					      size));
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
 * The other errors, once each
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
	EXPECT_EQ(-ENOTTY, call_ioctl(self->fd, _IO(SPOTTIMER_IOC_MAGIC, 0x42),
				      NULL));
	EXPECT_EQ(-ENOTTY,
		  call_ioctl(self->fd,
			     _IOW(SPOTTIMER_IOC_MAGIC + 1, 0x01,
				  struct spottimer_batch), arg));
	EXPECT_EQ(-ENOTTY, call_ioctl(self->fd, TCGETS, arg));
}

TEST_F(errors, h2_eexist)
{
	struct spottimer_register reg = timer_once(KEY, HOUR);

	reg.flags = SPOTTIMER_REG_EXCL;
	EXPECT_EQ(-EEXIST, spot_register(self->fd, &reg));
}

TEST_F(errors, h2_enoent)
{
	struct spottimer_register reg = timer_once(FREE, HOUR);

	reg.flags = SPOTTIMER_REG_REARM;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
	reg.flags = 0;
	reg.generation = self->generation;
	EXPECT_EQ(-ENOENT, spot_register(self->fd, &reg));
	EXPECT_EQ(-ENOENT, cancel(self->fd, FREE, 0, 0).error);
	EXPECT_EQ(-ENOENT, cancel(self->fd, KEY, self->generation + 1,
				  0).error);
	EXPECT_EQ(-ENOENT, complete(self->fd, KEY, 0, 0));
	EXPECT_EQ(-ENOENT, complete(self->fd, FREE, 0, 0));
	EXPECT_EQ(-ENOENT, query(self->fd, FREE, 0).error);
	EXPECT_EQ(-ENOENT, query(self->fd, KEY, self->generation + 1).error);
}

TEST_F(errors, h2_estale)
{
	__u64 old = self->generation;
	struct spottimer_register reg = timer_once(KEY, HOUR);

	self->generation = arm_once(self->fd, KEY, HOUR, 0);
	ASSERT_LT(old, self->generation);
	reg.generation = old;
	EXPECT_EQ(-ESTALE, spot_register(self->fd, &reg));
	EXPECT_EQ(-ESTALE, cancel(self->fd, KEY, old, 0).error);
	EXPECT_EQ(-ESTALE, complete(self->fd, KEY, old, 0));
	EXPECT_EQ(-ESTALE, query(self->fd, KEY, old).error);

	reg.generation = 0;
	reg.owner = OWNER;
	reg.epoch = 4;
	EXPECT_EQ(-ESTALE, spot_register(self->fd, &reg));
	EXPECT_EQ(-ESTALE, lease_grant(self->fd, OWNER, 5, HOUR));
	EXPECT_EQ(-ESTALE, lease_renew(self->fd, OWNER, 4, HOUR));
	EXPECT_EQ(-ESTALE, lease_revoke(self->fd, OWNER, 4, 0));
}

TEST_F(errors, h2_ekeyexpired)
{
	struct spottimer_register reg = timer_once(KEY, HOUR);

	reg.owner = OWNER + 1;
	reg.epoch = 1;
	EXPECT_EQ(-EKEYEXPIRED, spot_register(self->fd, &reg));
	EXPECT_EQ(-EKEYEXPIRED, lease_renew(self->fd, OWNER + 1, 1, HOUR));
	EXPECT_EQ(-EKEYEXPIRED, lease_revoke(self->fd, OWNER + 1, 1, 0));
}

TEST_F(errors, h2_eopnotsupp)
{
	struct spottimer_register reg = timer_once(KEY, HOUR);
	struct spottimer_info info;

	reg.clock = CLOCK_REALTIME;
	EXPECT_EQ(-EOPNOTSUPP, spot_register(self->fd, &reg));
	reg.key = FREE;
	reg.flags = SPOTTIMER_REG_ABSTIME;
	EXPECT_EQ(-EOPNOTSUPP, spot_register(self->fd, &reg));
	/* and it says so */
	ASSERT_EQ(0, spot_info(self->fd, &info));
	EXPECT_EQ(1 << CLOCK_MONOTONIC | 1 << CLOCK_BOOTTIME, info.clocks);
}

static int drop_capability(int cap)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[CAP_TO_INDEX(cap)].effective &= ~CAP_TO_MASK(cap);
	data[CAP_TO_INDEX(cap)].permitted &= ~CAP_TO_MASK(cap);
	data[CAP_TO_INDEX(cap)].inheritable &= ~CAP_TO_MASK(cap);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

TEST_F(errors, h2_eperm)
{
	struct spottimer_register reg = timer_once(1, HOUR);
	int fd;

	reg.flags = SPOTTIMER_REG_CRITICAL;
	fd = spot_open(0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, spot_register(fd, &reg));
	close(fd);

	ASSERT_EQ(0, drop_capability(CAP_SYS_NICE));
	fd = spot_open(0);
	ASSERT_LE(0, fd);
	reg.generation = 0;
	EXPECT_EQ(-EPERM, spot_register(fd, &reg));
	EXPECT_EQ(-ENOENT, query(fd, 1, 0).error);
	EXPECT_NE(0, arm_once(fd, 1, HOUR, 0));
	EXPECT_EQ(-EPERM, spot_register(fd, &reg));
	EXPECT_EQ(SPOTTIMER_PENDING, query(fd, 1, 0).state);
	close(fd);
}

/*
 * INFO
 */

TEST_F(errors, h2_info)
{
	struct spottimer_info info;

	memset(&info, 0xaa, sizeof(info));
	ASSERT_EQ(0, spot_info(self->fd, &info));
	EXPECT_EQ(read_param("tick_ns"), info.tick_ns);
	EXPECT_EQ(read_param("max_timers"), info.max_timers);
	EXPECT_EQ(read_param("max_user_timers"), info.max_user_timers);
	EXPECT_EQ(sizeof(struct spottimer_record), info.record_size);
	EXPECT_LT(0, info.ended);
	EXPECT_EQ(0, info.reserved);
}

TEST_F(errors, h2_info_of_another_size)
{
	unsigned char buffer[sizeof(struct spottimer_info) + 64];
	const size_t size = sizeof(struct spottimer_info);
	const size_t shorter[] = { 0, 8, size - 8, size - 1 };
	size_t i;

	/* shorter: refused, and nothing is written */
	for (i = 0; i < ARRAY_LEN(shorter); i++) {
		memset(buffer, 0xaa, sizeof(buffer));
		EXPECT_EQ(-EINVAL, call_ioctl(self->fd,
					      resized(SPOTTIMER_IOC_INFO,
						      shorter[i]), buffer));
		EXPECT_EQ(0xaa, buffer[0]);
		EXPECT_EQ(0xaa, buffer[size - 1]);
	}

	/* longer: the rest is zeroed, and nothing beyond it is written */
	memset(buffer, 0xaa, sizeof(buffer));
	ASSERT_EQ(0, call_ioctl(self->fd, resized(SPOTTIMER_IOC_INFO,
						  size + 24), buffer));
	EXPECT_EQ(sizeof(struct spottimer_record),
		  ((struct spottimer_info *)buffer)->record_size);
	for (i = size; i < size + 24; i++)
		EXPECT_EQ(0, buffer[i]);
	for (; i < sizeof(buffer); i++)
		EXPECT_EQ(0xaa, buffer[i]);
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

TEST_HARNESS_MAIN
