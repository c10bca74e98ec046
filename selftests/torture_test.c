// SPDX-License-Identifier: GPL-2.0
/*
 * Everything at once, and afterwards the question whether it can have been so.
 *
 * Actors, which are threads and one process, work on the same files, while CPUs
 * go and come, clocks are set, signals arrive and files are closed under load.
 * They share no lock of ours, so that the kernel gets all of it at one time.
 * Each of them only takes notes: what it asked, what it was told, and a stamp
 * before and after. A call takes effect at some moment between its two stamps.
 * A round lasts about a second. Then the notes of all actors are put in order
 * and compared with the contract: whatever moments one chooses, a record must
 * not come before it is due, after its timer's end, twice, or not at all.
 *
 * In one test every key has one worker, who knows at each moment whether it has
 * a timer and so which answer is right. In the other all workers are at the
 * same few keys.
 *
 * SPOT_TORTURE_SECONDS is how long each test runs, SPOT_SEED its first seed.
 */
#include "spottimer_test.h"

#include <stdarg.h>
#include <sys/param.h>
#include <sys/uio.h>

enum {
	FILES	= 2,
	KEYS	= 48,
	FEW	= 5,		/* keys, where all workers are at the same ones */
	OWNERS	= 3,
	BATCH	= 8,
	ALL_KEYS = KEYS + BATCH,	/* with those of the actor HOTPLUG */
	RECORDS	= 32,		/* in one read */
	LOG	= 1 << 16,	/* notes of one actor in a round */
	ROUND	= 1000,		/* ms */
	HANDLERS = 256,		/* that run at once */
	SOON	= 700,		/* ms */
};

/* Actors; the last of the readers is a process. */
enum {
	MAIN, LEASER, COMPLETER, WEATHER, HOTPLUG,
	READER, PROCESS = READER + 3, WORKER, ACTORS = WORKER + 6,
	WORKERS = ACTORS - WORKER,
};

enum { MONO, BOOT, REAL, CLOCKS };

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME
};

/* What was done */
enum kind { REGISTER, CANCEL, COMPLETE, QUERY, LEASE, RECORD, STEP };

#define OP(name, nr) {					\
	.cmd = nr,					\
	.size = sizeof(struct spottimer_##name),	\
	.error = offsetof(struct spottimer_##name, error), \
}

static const struct {
	unsigned int cmd, size, error;
} ops[] = {
	[REGISTER] = OP(register, SPOTTIMER_IOC_REGISTER),
	[CANCEL] = OP(cancel, SPOTTIMER_IOC_CANCEL),
	[COMPLETE] = OP(complete, SPOTTIMER_IOC_COMPLETE),
	[QUERY] = OP(query, SPOTTIMER_IOC_QUERY),
	[LEASE] = OP(lease, SPOTTIMER_IOC_LEASE),
	[RECORD] = { .size = sizeof(struct spottimer_record) },
	[STEP] = { .size = sizeof(struct spottimer_record) },
};

/* What it is about, and so with which other notes it is put together */
enum about { AN_OWNER, MANY_TIMERS, THE_CLOCK, A_TIMER };

/* When it was: stamps, and the time before and after them */
struct moment {
	__u64 begin, end;
	__s64 before[CLOCKS], after[CLOCKS];
};

struct note {
	__u16 kind, about, file, actor;
	struct moment at;
	union {
		struct {	/* as all entries begin */
			__u64 key, generation;	/* or owner and epoch */
		};
		struct spottimer_register reg;
		struct spottimer_cancel cancel;
		struct spottimer_complete complete;
		struct spottimer_query query;
		struct spottimer_lease lease;
		struct spottimer_record rec;
	};
};

/* What a worker knows of a key that nobody else registers or cancels */
struct known {
	enum { DEAD, ALIVE, UNSURE } life;
	__u64 generation;
};

struct actor {
	unsigned int id;
	__u64 random;
	pthread_t thread;
	bool started;
	char *border;		/* beyond it nothing can be written */
	struct note *log;
	struct known known[FILES][ALL_KEYS];
};

enum phase { WORK, READ, COMPLETE_REST, OVER };

/* Seen by all actors, the process too */
struct shared {
	__u64 stamp;
	enum phase phase;
	bool full;
	unsigned int count[ACTORS];	/* of notes */
	__u64 epoch[FILES][OWNERS + 1];
	unsigned int violations;
	__u64 bad_file, bad_key, bad_owner, bad_stamp;
};

static struct shared *shared;
static struct actor actors[ACTORS];
static struct note *logs;
static int files[FILES];
static pid_t process;
static bool own_keys;		/* a worker for every key */
static __u32 known_clocks;
static __s64 real_offset;	/* of CLOCK_REALTIME, at the beginning */

#define get(x)		__atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define set(x, value)	__atomic_store_n(&(x), value, __ATOMIC_RELEASE)

static __u64 rnd(struct actor *a, __u64 n)
{
	a->random ^= a->random << 13;
	a->random ^= a->random >> 7;
	a->random ^= a->random << 17;
	return (a->random >> 11) % n;
}

static bool one_in(struct actor *a, __u64 n)
{
	return !rnd(a, n);
}

/* Timers wait on the CPU of who armed them, so be on each, if it is there. */
static void roam(struct actor *a)
{
	if (one_in(a, 8))
		stay_on_cpu(rnd(a, 2));
}

static bool may_set_clock(void)
{
	return known_clocks & 1U << CLOCK_REALTIME;
}

/*
 * Violations: the first ones are printed, and in the end the history of the key
 * of the very first.
 */

static __printf(5, 6) void violation(int file, __u64 key, __u64 owner,
				     __u64 stamp, const char *format, ...)
{
	unsigned int n = __atomic_fetch_add(&shared->violations, 1,
					    __ATOMIC_RELAXED);
	char text[240];
	va_list args;

	if (!n) {
		shared->bad_file = file;
		shared->bad_key = key;
		shared->bad_owner = owner;
		shared->bad_stamp = stamp;
	}
	if (n > 20)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printf("# VIOLATION file %d key %llu owner %llu stamp %llu: %s\n", file,
	       key, owner, stamp, text);
	fflush(stdout);
}

static void bad_note(const struct note *n, __u64 owner, const char *why,
		     __u64 than)
{
	violation(n->file, n->key, owner, n->at.begin,
		  "kind %u generation %llu: %s %llu", n->kind, n->generation,
		  why, than);
}

static void print_note(const struct note *n)
{
	printf("# %llu-%llu at %lld actor %u: ", n->at.begin, n->at.end,
	       n->at.before[MONO], n->actor);
	if (n->kind == REGISTER)
		printf("REGISTER %llu %lld+%lld on %u policy %u/%u flags %#x owner %llu/%llu: %d\n",
		       n->generation, n->reg.first, n->reg.period, n->reg.clock,
		       n->reg.policy, n->reg.max_catch_up, n->reg.flags,
		       n->reg.owner, n->reg.epoch, n->reg.error);
	else if (n->kind == CANCEL)
		printf("CANCEL %llu flags %#x started %llu error %d result %d\n",
		       n->generation, n->cancel.flags, n->cancel.started,
		       n->cancel.error, n->cancel.result);
	else if (n->kind == COMPLETE)
		printf("COMPLETE %llu result %d error %d\n", n->generation,
		       n->complete.result, n->complete.error);
	else if (n->kind == QUERY)
		printf("QUERY %llu state %u started %llu scheduled %llu error %d\n",
		       n->generation, n->query.state, n->query.started,
		       n->query.scheduled, n->query.error);
	else if (n->kind == LEASE)
		printf("LEASE %llu op %u flags %#x deadline %lld error %d\n",
		       n->generation, n->lease.op, n->lease.flags,
		       n->lease.deadline, n->lease.error);
	else if (n->kind == RECORD)
		printf("RECORD %llu flags %#x: %llu %llu %llu result %d at %lld\n",
		       n->generation, n->rec.flags, n->rec.delivery_index,
		       n->rec.scheduled_index, n->rec.skipped_ticks,
		       n->rec.result, n->at.after[MONO]);
	else
		printf("STEP from %lld to %lld\n", n->at.before[REAL],
		       n->at.after[REAL]);
}

/*
 * Taking notes
 */

static __u64 stamp(void)
{
	return __atomic_add_fetch(&shared->stamp, 1, __ATOMIC_SEQ_CST);
}

/* What CLOCK_MONOTONIC says is the outermost, so that it covers the others. */
static void begin(struct moment *at)
{
	int i;

	for (i = MONO; i < CLOCKS; i++)
		at->before[i] = now_on(clocks[i]);
	at->begin = stamp();
}

static void end(struct moment *at)
{
	int i;

	at->end = stamp();
	for (i = CLOCKS - 1; i >= MONO; i--)
		at->after[i] = now_on(clocks[i]);
}

static enum about about(const struct note *n)
{
	const __u32 many = SPOTTIMER_CANCEL_OWNER | SPOTTIMER_CANCEL_ALL;

	if (n->kind == STEP)
		return THE_CLOCK;
	if (n->kind == LEASE ||
	    (n->kind == RECORD && n->rec.flags & SPOTTIMER_REC_LEASE))
		return AN_OWNER;
	return n->kind == CANCEL && n->cancel.flags & many ? MANY_TIMERS :
							     A_TIMER;
}

static void take_note(struct actor *a, enum kind what, int file,
		      const struct moment *at, const void *entry)
{
	unsigned int count = shared->count[a->id];
	struct note *n = &a->log[count];

	if (count == LOG) {
		violation(file, 0, 0, 0, "actor %u took too many notes", a->id);
		return;
	}
	n->kind = what;
	n->file = file;
	n->actor = a->id;
	n->at = *at;
	memcpy(&n->reg, entry, ops[what].size);
	n->about = about(n);
	if (what == RECORD && n->about == AN_OWNER)
		n->key = n->rec.owner;
	set(shared->count[a->id], count + 1);
	if (count > LOG * 3 / 4)
		set(shared->full, true);
}

/*
 * Do a batch of @n entries, sometimes with a bad one among them, and take notes
 * of what was worked on. The others say ECANCELED: a signal came before.
 */
static void submit(struct actor *a, int file, enum kind what, void *entries,
		   int n)
{
	char buf[(BATCH + 1) * sizeof(struct spottimer_register)];
	int bad = one_in(a, 8) ? (int)rnd(a, n + 1) : -1;
	int total = n + (bad >= 0), size = ops[what].size, done, from, i;
	struct moment at;

	for (i = 0; i < total; i++) {
		void *entry = buf + i * size;

		from = i == bad ? 0 : i - (bad >= 0 && i > bad);
		memcpy(entry, entries + from * size, size);
		*(__s32 *)(entry + ops[what].error) = -ECANCELED;
		/* all entries end with a reserved field */
		*(__u32 *)(entry + size - sizeof(__u32)) = i == bad;
	}
	begin(&at);
	done = spot_batch(files[file], ops[what].cmd, buf, total, size);
	end(&at);
	if (done <= 0)
		violation(file, 0, 0, at.begin, "batch %u gave %d", what, done);
	for (i = 0; i < total; i++) {
		void *entry = buf + i * size;
		int error = *(__s32 *)(entry + ops[what].error);

		if (i == bad) {
			if (i < done && error != -EINVAL)
				violation(file, 0, 0, at.begin,
					  "a bad entry gave %d", error);
			continue;
		}
		from = i - (bad >= 0 && i > bad);
		memcpy(entries + from * size, entry, size);
		if (i < done)
			take_note(a, what, file, &at, entry);
	}
}

/*
 * Workers
 */

static __u64 some_key(struct actor *a, __u64 n)
{
	if (own_keys)
		return n % (KEYS / WORKERS) * WORKERS + a->id - WORKER;
	return n % FEW;
}

/* Write keys, and sometimes generations, into @n entries. */
static void name_timers(struct actor *a, int file, enum kind what,
			void *entries, unsigned int n)
{
	__u64 from = rnd(a, KEYS);
	unsigned int i;

	for (i = 0; i < n; i++) {
		__u64 *name = entries + i * ops[what].size;

		name[0] = some_key(a, from + i);
		name[1] = a->known[file][name[0]].generation;
		if (what == COMPLETE)
			/* 0 would do, but then nobody knew which one it was */
			name[1] = name[1] ?: 1ULL << 60;
		else if (!one_in(a, what == REGISTER ? 8 : 2))
			name[1] = 0;
	}
}

static __s64 some_period(struct actor *a)
{
	__u64 base = 1000ULL << (rnd(a, 3) ? 8 + rnd(a, 8) : rnd(a, 16));

	return one_in(a, 4) ? 0 : base + rnd(a, base / 2);
}

static __s64 some_first(struct actor *a, struct spottimer_register *r)
{
	/* some are still to come when a CPU has gone, which takes a while */
	static const __s64 far[] = { 300 * MSEC, 600 * MSEC, HOUR,
				     365 * 24 * HOUR, INT64_MAX };
	__s64 delay = rnd(a, 20 * MSEC);

	if (one_in(a, 6))
		delay = far[rnd(a, ARRAY_LEN(far))];
	if (one_in(a, 3))
		return delay;
	r->flags |= SPOTTIMER_REG_ABSTIME;
	if (delay == INT64_MAX)
		return delay;
	return now_on(r->clock) + delay - (__s64)rnd(a, 10 * MSEC);
}

/* Any timer; its key and generation are there already. */
static void make_timer(struct actor *a, int file, struct spottimer_register *r)
{
	static const __u32 max[] = { 0, 1, 2, 3, 7, INT_MAX };
	static __u64 cookie;

	do {
		r->clock = clocks[rnd(a, CLOCKS)];
	} while (!(known_clocks & 1U << r->clock));
	r->cookie = __atomic_add_fetch(&cookie, 1, __ATOMIC_RELAXED);
	r->first = some_first(a, r);
	r->period = some_period(a);
	r->slack = one_in(a, 4) ? rnd(a, 5 * MSEC) : 0;
	r->policy = rnd(a, 3);
	r->max_catch_up = max[rnd(a, ARRAY_LEN(max))];
	/* a clock that is set by years would have it catch up for ever */
	if (r->clock == CLOCK_REALTIME && r->max_catch_up == INT_MAX)
		r->max_catch_up = 50;
	r->flags |= one_in(a, 3) ? SPOTTIMER_REG_MANUAL : 0;
	r->flags |= one_in(a, 6) ? SPOTTIMER_REG_CRITICAL : 0;
	r->flags |= one_in(a, 8) ? SPOTTIMER_REG_REARM : 0;
	if (r->generation)
		r->generation -= one_in(a, 4);
	else if (!(r->flags & SPOTTIMER_REG_REARM) && one_in(a, 8))
		r->flags |= SPOTTIMER_REG_EXCL;
	if (one_in(a, 4)) {
		r->owner = 1 + rnd(a, OWNERS);
		r->epoch = get(shared->epoch[file][r->owner]) + 1;
		r->epoch -= r->epoch > 1 && !one_in(a, 16);
	}
}

/* Is @got what one who knows the key must be told to @asked? */
static bool is_right(const struct known *k,
		     const struct spottimer_register *asked,
		     const struct spottimer_register *got)
{
	bool excl = asked->flags & SPOTTIMER_REG_EXCL;
	bool needs = asked->flags & SPOTTIMER_REG_REARM || asked->generation;

	switch (got->error) {
	case 0:
		return (!excl || k->life != ALIVE) &&
		       (!needs || k->life != DEAD) &&
		       (!asked->generation ||
			asked->generation == k->generation);
	case -EEXIST:
		return excl && k->life != DEAD;
	case -ENOENT:
		return needs && k->life != ALIVE;
	case -ESTALE:
		/* of its epoch the worker knows too little */
		return asked->owner ||
		       (k->life != DEAD && asked->generation < k->generation);
	case -EKEYEXPIRED:
		return asked->owner;
	default:
		return got->error == -ECANCELED;
	}
}

static void wrong(const struct known *k, int file, enum kind what, __u64 key,
		  __u64 generation, int error)
{
	violation(file, key, 0, get(shared->stamp),
		  "kind %u: error %d generation %llu, but life %u generation %llu",
		  what, error, generation, k->life, k->generation);
}

static void do_register(struct actor *a, int file)
{
	struct spottimer_register asked[BATCH] = {}, got[BATCH];
	unsigned int n = 1 + rnd(a, BATCH), i;

	name_timers(a, file, REGISTER, asked, n);
	for (i = 0; i < n; i++)
		make_timer(a, file, &asked[i]);
	memcpy(got, asked, sizeof(got));
	submit(a, file, REGISTER, got, n);
	for (i = 0; i < n; i++) {
		struct known *k = &a->known[file][got[i].key];

		if ((own_keys && !is_right(k, &asked[i], &got[i])) ||
		    (!got[i].error && got[i].generation <= k->generation))
			wrong(k, file, REGISTER, got[i].key, got[i].generation,
			      got[i].error);
		if (got[i].error)
			continue;
		k->generation = got[i].generation;
		k->life = got[i].period && !got[i].owner ? ALIVE : UNSURE;
	}
}

/* The same for an answer about the timer that a key has, or had. */
static void judge(struct known *k, int file, enum kind what, __u64 key,
		  __u64 generation, int error, bool seems_alive)
{
	if (!own_keys || error == -ECANCELED || error == -ENOMEM)
		return;
	if (error == -ENOENT || error == -ESTALE ? k->generation :
	    generation != k->generation || (k->life == ALIVE && !seems_alive))
		wrong(k, file, what, key, generation, error);
	if (what == CANCEL)
		k->life = DEAD;
}

static void do_cancel(struct actor *a, int file)
{
	unsigned int n = 1 + rnd(a, BATCH / 2), i;
	struct spottimer_cancel got[BATCH] = {};

	name_timers(a, file, CANCEL, got, n);
	for (i = 0; i < n; i++) {
		got[i].flags = one_in(a, 2) ? SPOTTIMER_CANCEL_NOWAIT : 0;
		if (own_keys || !one_in(a, 64))
			continue;
		got[i].generation = 0;
		got[i].key = rnd(a, OWNERS + 1);
		got[i].flags |= got[i].key ? SPOTTIMER_CANCEL_OWNER :
					     SPOTTIMER_CANCEL_ALL;
	}
	submit(a, file, CANCEL, got, n);
	for (i = 0; i < n; i++)
		judge(&a->known[file][got[i].key], file, CANCEL, got[i].key,
		      got[i].generation, got[i].error, got[i].cancelled == 1);
}

static void do_query(struct actor *a, int file)
{
	unsigned int n = 1 + rnd(a, BATCH), i;
	struct spottimer_query got[BATCH] = {};

	name_timers(a, file, QUERY, got, n);
	submit(a, file, QUERY, got, n);
	for (i = 0; i < n; i++)
		judge(&a->known[file][got[i].key], file, QUERY, got[i].key,
		      got[i].generation, got[i].error,
		      got[i].state != SPOTTIMER_ENDED);
}

static void do_complete(struct actor *a, int file)
{
	struct spottimer_complete got[BATCH] = {};
	unsigned int n = 1 + rnd(a, BATCH / 2), i;

	name_timers(a, file, COMPLETE, got, n);
	for (i = 0; i < n; i++)
		got[i].result = -(int)rnd(a, 3);
	submit(a, file, COMPLETE, got, n);
}

static void *work(void *arg)
{
	struct actor *a = arg;

	while (get(shared->phase) == WORK) {
		unsigned int what = rnd(a, 16), file = rnd(a, FILES);

		roam(a);
		if (what < 6)
			do_register(a, file);
		else if (what < 9)
			do_cancel(a, file);
		else if (what < 10)
			do_complete(a, file);
		else if (what < 12)
			do_query(a, file);
		else
			usleep(rnd(a, 4000));
	}
	return NULL;
}

/* Any change of a lease. Each epoch is one of a kind, even to a new owner. */
static void make_lease(struct actor *a, struct spottimer_lease *l, __u64 epoch,
		       bool forgotten)
{
	l->op = one_in(a, 2) ? SPOTTIMER_LEASE_RENEW : rnd(a, 3);
	l->epoch = epoch + (l->op == SPOTTIMER_LEASE_GRANT);
	if (l->epoch > 1 && !forgotten && one_in(a, 16))
		l->epoch--;
	l->epoch = l->epoch ?: 1;
	if (l->op == SPOTTIMER_LEASE_REVOKE) {
		l->flags = one_in(a, 3) ? SPOTTIMER_LEASE_FORGET : 0;
		return;
	}
	l->deadline = one_in(a, 8) ? HOUR : 1 + rnd(a, 40 * MSEC);
	if (one_in(a, 2)) {
		l->flags = SPOTTIMER_LEASE_ABSTIME;
		l->deadline += now_on(CLOCK_BOOTTIME);
	}
	if (l->op == SPOTTIMER_LEASE_GRANT && one_in(a, 2))
		l->flags |= SPOTTIMER_LEASE_ADOPT;
}

/* The only one who changes leases, so that their history has an order. */
static void *lease_out(void *arg)
{
	bool forgotten[FILES][OWNERS + 1] = {};
	struct actor *a = arg;

	while (get(shared->phase) == WORK) {
		unsigned int n = 1 + rnd(a, OWNERS), from = rnd(a, OWNERS), i;
		struct spottimer_lease got[OWNERS] = {};
		int file = rnd(a, FILES);

		for (i = 0; i < n; i++) {
			__u64 owner = 1 + (from + i) % OWNERS;

			got[i].owner = owner;
			make_lease(a, &got[i], shared->epoch[file][owner],
				   forgotten[file][owner]);
		}
		submit(a, file, LEASE, got, n);
		for (i = 0; i < n; i++) {
			if (got[i].error)
				continue;
			forgotten[file][got[i].owner] =
				got[i].flags & SPOTTIMER_LEASE_FORGET;
			set(shared->epoch[file][got[i].owner], got[i].epoch);
		}
		usleep(rnd(a, 5000));
	}
	return NULL;
}

/*
 * Readers, and who completes what they took
 */

/* One read, of whatever kind. Returns bytes, or an error that is allowed. */
static ssize_t read_once(struct actor *a, int file, bool wait)
{
	const size_t size = sizeof(struct spottimer_record);
	char buf[(RECORDS + 1) * sizeof(struct spottimer_record)];
	struct iovec iov = { buf, (1 + rnd(a, RECORDS)) * size + rnd(a, size) };
	size_t whole = iov.iov_len / size;
	struct spottimer_record rec;
	struct moment at;
	ssize_t ret, i;
	bool right;

	if (one_in(a, 8)) {
		iov.iov_len = 1 + rnd(a, size - 1);
		whole = 0;
	} else if (one_in(a, 8)) {
		whole = rnd(a, 4);
		iov.iov_base = a->border - whole * size - rnd(a, size);
	}
	begin(&at);
	ret = preadv2(files[file], &iov, 1, -1, wait ? 0 : RWF_NOWAIT);
	ret = ret < 0 ? -errno : ret;
	end(&at);

	if (iov.iov_len < size)
		right = ret == -EINVAL;
	else if (ret < 0)
		right = ret == (wait ? -EINTR : -EAGAIN) ||
			(!whole && ret == -EFAULT);
	else
		right = ret && !(ret % size) && ret / size <= whole;
	if (!right)
		violation(file, 0, 0, at.begin, "read of %zu bytes gave %zd",
			  iov.iov_len, ret);
	for (i = 0; i < ret; i += size) {
		memcpy(&rec, iov.iov_base + i, size);
		take_note(a, RECORD, file, &at, &rec);
	}
	return ret;
}

static void *read_all(void *arg)
{
	struct actor *a = arg;

	while (get(shared->phase) <= READ) {
		unsigned int count = shared->count[a->id];
		bool wait = a->id == READER ||
			    (a->id == PROCESS && one_in(a, 4));
		int file = rnd(a, FILES);

		roam(a);
		if (one_in(a, 2))
			readable_for(files[file], 5);
		if (read_once(a, file, wait) < 0)
			usleep(rnd(a, 500));
		/* a handler that cancels itself must not wait (E4) */
		if (!own_keys && count < shared->count[a->id] && one_in(a, 8)) {
			struct note *n = &a->log[count];
			struct spottimer_cancel c = {
				.key = n->key,
				.generation = n->generation,
			};

			if (n->about == A_TIMER)
				submit(a, file, CANCEL, &c, 1);
		}
	}
	return NULL;
}

static bool begins_handler(const struct note *n)
{
	return n->kind == RECORD && n->rec.flags & SPOTTIMER_REC_MANUAL;
}

/* End the handler that began with the record in @n. */
static void complete_handler(struct actor *a, const struct note *n)
{
	struct spottimer_complete c = {
		.key = n->key,
		.generation = n->generation,
		.result = -(int)rnd(a, 3),
	};

	submit(a, n->file, COMPLETE, &c, 1);
}

/* Follow what the readers note, and complete those handlers, some later. */
static void *complete_all(void *arg)
{
	static struct {
		const struct note *note;
		__s64 until;
	} run[HANDLERS];
	unsigned int seen[ACTORS] = {}, n = 0, id, i;
	struct actor *a = arg;
	bool last;

	do {
		last = get(shared->phase) == OVER;
		for (id = READER; id <= PROCESS; id++) {
			while (seen[id] < get(shared->count[id])) {
				const struct note *note =
					&actors[id].log[seen[id]++];

				if (!begins_handler(note))
					continue;
				if (n == HANDLERS)
					complete_handler(a, run[--n].note);
				run[n].note = note;
				run[n++].until = one_in(a, 2) ? 0 :
						 now() + rnd(a, 30 * MSEC);
			}
		}
		for (i = 0; i < n; i++) {
			if (!last && run[i].until > now())
				continue;
			complete_handler(a, run[i].note);
			run[i--] = run[--n];
		}
		usleep(300);
	} while (!last);
	return NULL;
}

/*
 * What happens beneath
 */

/* Step CLOCK_REALTIME so many seconds away from where it belongs. */
static void step_clock(struct actor *a, __s64 seconds)
{
	__s64 time = now() + real_offset + seconds * SEC;
	struct timespec ts = { time / SEC, time % SEC };
	struct spottimer_record none = {};
	struct moment at;

	if (!may_set_clock())
		return;
	begin(&at);
	if (clock_settime(CLOCK_REALTIME, &ts))
		return;
	end(&at);
	take_note(a, STEP, 0, &at, &none);
}

/* A file that is closed with all that it has */
static void pass_by(struct actor *a)
{
	struct spottimer_register reg[64];
	struct spottimer_record rec[16];
	int fd = spot_open(O_NONBLOCK), i;

	for (i = 0; i < (int)ARRAY_LEN(reg); i++) {
		reg[i] = timer_once(i, rnd(a, 3 * MSEC));
		reg[i].period = 1 + rnd(a, 3 * MSEC);
	}
	spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, i, sizeof(reg[0]));
	usleep(rnd(a, 4000));
	if (one_in(a, 2))
		read_records(fd, rec, ARRAY_LEN(rec));
	close(fd);
}

static void *be_weather(void *arg)
{
	static const __s64 step[] = { 0, 1, -1, 3600, -3600, 86400,
				      5 * 365 * 86400LL, -365 * 86400LL };
	struct actor *a = arg;
	unsigned int id;

	while (get(shared->phase) == WORK) {
		switch (rnd(a, 12)) {
		case 0:
			write_param("budget", 1ULL << rnd(a, 11));
			write_param("budget_ns", 10000 + rnd(a, MSEC));
			break;
		case 1:
			pass_by(a);
			break;
		case 2:
			kill(process, SIGSTOP);
			usleep(rnd(a, 60000));
			kill(process, SIGCONT);
			break;
		case 3:
			read_fdinfo(files[rnd(a, FILES)], "registered");
			break;
		case 4 ... 5:
			step_clock(a, step[rnd(a, ARRAY_LEN(step))]);
			break;
		case 6:
			kill(process, SIGUSR1);
			break;
		default:
			id = READER + rnd(a, ACTORS - READER);
			if (actors[id].started)
				pthread_kill(actors[id].thread, SIGUSR1);
		}
		usleep(rnd(a, 4000));
	}
	return NULL;
}

/* Timers on a CPU that is to go, late enough to be there when it has gone. */
static void leave_timers(struct actor *a, int file)
{
	struct spottimer_register got[BATCH] = {};
	int i;

	for (i = 0; i < BATCH; i++) {
		got[i].key = KEYS + i;
		make_timer(a, file, &got[i]);
		got[i].first = 200 * MSEC + rnd(a, 500 * MSEC);
		got[i].flags &= SPOTTIMER_REG_MANUAL | SPOTTIMER_REG_CRITICAL;
	}
	submit(a, file, REGISTER, got, BATCH);
}

static void *come_and_go(void *arg)
{
	struct actor *a = arg;

	while (get(shared->phase) == WORK) {
		stay_on_cpu(1);
		leave_timers(a, rnd(a, FILES));
		set_online(1, 0);
		usleep(rnd(a, 30000));
		set_online(1, 1);
		usleep(rnd(a, 60000));
	}
	/* it may be away in the end, when all that lives has to fire */
	stay_on_cpu(1);
	leave_timers(a, rnd(a, FILES));
	if (one_in(a, 2))
		set_online(1, 0);
	return NULL;
}

/*
 * The notes of a round in order: by what they are about, then by file, key,
 * generation and begin
 */

struct range {
	const struct note **note;
	unsigned int n;
};

static struct range notes, steps, many[FILES];
static bool drained[FILES];	/* nothing was left to read in the end */

static int compare(__u64 x, __u64 y)
{
	return x < y ? -1 : x > y;
}

static int by_order(const void *x, const void *y)
{
	const struct note *a = *(const struct note **)x;
	const struct note *b = *(const struct note **)y;
	bool timers = a->about == A_TIMER;

	return compare(a->about, b->about) ?: compare(a->file, b->file) ?:
	       compare(a->key, b->key) ?:
	       (timers ? compare(a->generation, b->generation) : 0) ?:
	       compare(a->at.begin, b->at.begin);
}

static int by_delivery(const void *x, const void *y)
{
	return compare((*(const struct note **)x)->rec.delivery_index,
		       (*(const struct note **)y)->rec.delivery_index);
}

/* What happened to the key, and its owner, about the time of the violation */
static void print_history(void)
{
	unsigned int i;

	for (i = 0; i < notes.n; i++) {
		const struct note *n = notes.note[i];

		if (n->file == shared->bad_file &&
		    (n->about == AN_OWNER ? n->key == shared->bad_owner :
		     n->about == MANY_TIMERS || n->key == shared->bad_key) &&
		    n->at.end + 2500 > shared->bad_stamp &&
		    n->at.begin < shared->bad_stamp + 500)
			print_note(n);
	}
}

/*
 * Leases. A term is the time from a grant or a renewal until the next change of
 * any kind, or until its deadline.
 */

struct term {
	const struct note *from, *until;
	__u64 epoch;
	__u64 root;		/* timers of epochs from this one on go on */
	__s64 low, high;	/* the deadline is between them */
	bool voids;		/* adopts after a time without a lease */
};

static struct owner {
	struct range note;
	struct term *term;
	unsigned int terms;
} owners[FILES][OWNERS + 1];

static struct term *begin_term(struct owner *o, const struct note *n,
			       __u64 root, bool voids)
{
	bool absolute = n->lease.flags & SPOTTIMER_LEASE_ABSTIME;
	struct term *t = &o->term[o->terms++];

	*t = (struct term) {
		.from = n,
		.epoch = n->lease.epoch,
		.root = root,
		.low = n->lease.deadline + (absolute ? 0 : n->at.before[BOOT]),
		.high = n->lease.deadline + (absolute ? 0 : n->at.after[BOOT]),
		.voids = voids,
	};
	return t;
}

/* Whether the lease has ended for sure, or has not, when @n was done */
static bool surely_over(const struct term *t, const struct note *n)
{
	return !t || t->until || n->at.before[BOOT] >= t->high;
}

static bool surely_live(const struct term *t, const struct note *n)
{
	return t && !t->until && n->at.after[BOOT] < t->low;
}

/* Was this the right answer to one who is at the term @t? */
static bool lease_is_right(const struct term *t, const struct note *n)
{
	const struct spottimer_lease *l = &n->lease;
	bool grant = l->op == SPOTTIMER_LEASE_GRANT;

	switch (l->error) {
	case 0:
		if (grant)
			return !t || l->epoch > t->epoch;
		return t && l->epoch == t->epoch &&
		       (l->flags & SPOTTIMER_LEASE_FORGET ||
			!surely_over(t, n));
	case -ESTALE:
		return t && (grant ? l->epoch <= t->epoch :
				     l->epoch != t->epoch);
	case -EKEYEXPIRED:
		return !grant && !surely_live(t, n);
	default:
		return l->error == -EINVAL &&
		       l->flags & SPOTTIMER_LEASE_ABSTIME &&
		       n->at.after[BOOT] >= l->deadline;
	}
}

/* Make the terms of an owner, and see that each call got the right answer. */
static void check_leases(struct owner *o)
{
	struct term *t = NULL;
	bool adopt, over;
	unsigned int i;

	o->term = calloc(o->note.n + 1, sizeof(*o->term));
	for (i = 0; i < o->note.n; i++) {
		const struct note *n = o->note.note[i];
		const struct spottimer_lease *l = &n->lease;

		if (n->kind != LEASE)
			continue;
		if (!lease_is_right(t, n))
			bad_note(n, n->key, "lease gave", l->error);
		/* to revoke too late ends the term all the same */
		if (l->error && (l->error != -EKEYEXPIRED ||
				 l->op != SPOTTIMER_LEASE_REVOKE))
			continue;
		adopt = l->flags & SPOTTIMER_LEASE_ADOPT && t;
		over = surely_over(t, n);
		if (t && !t->until)
			t->until = n;
		if (l->op == SPOTTIMER_LEASE_GRANT)
			t = begin_term(o, n, adopt ? t->root : l->epoch,
				       adopt && over);
		else if (l->op == SPOTTIMER_LEASE_RENEW)
			t = begin_term(o, n, t ? t->root : 0, false);
		else if (!l->error && l->flags & SPOTTIMER_LEASE_FORGET)
			t = NULL;
	}
}

/*
 * One LEASE record of each lease that has run out; but one that was not read
 * gives way to that of a later one, and is forgotten with the owner (G3).
 */
static void check_lapse(const struct owner *o, const struct term *t,
			bool all_read)
{
	const struct note *until = t->until;
	bool may = !until || until->at.after[BOOT] >= t->low;
	bool sure = until && (until->at.before[BOOT] >= t->high ||
			      until->lease.error);
	bool later = false;
	unsigned int seen = 0, i;

	for (i = 0; i < o->note.n; i++) {
		const struct note *n = o->note.note[i];

		if (n->kind == LEASE) {
			later |= !n->lease.error &&
				 n->at.end > t->from->at.end &&
				 n->lease.op == SPOTTIMER_LEASE_REVOKE &&
				 n->lease.flags & SPOTTIMER_LEASE_FORGET;
		} else if (n->generation != t->epoch) {
			later |= n->generation > t->epoch;
		} else if (seen++ || !may || n->at.after[BOOT] < t->low) {
			bad_note(n, n->key, "LEASE record too early, or number",
				 seen);
		}
	}
	if (sure && !seen && !later && all_read)
		bad_note(until, until->key, "no LEASE record of", t->epoch);
}

/*
 * Whether there may have been a lease for what @n says of the timer that @reg
 * has registered; if @must, whether there was one all the time.
 */
static bool admits(const struct note *reg, const struct note *n, bool must)
{
	const struct owner *o = &owners[reg->file][reg->reg.owner];
	const struct term *t;
	bool all, some;

	for (t = o->term; t < o->term + o->terms; t++) {
		if (n->kind == REGISTER ? t->epoch != reg->reg.epoch :
		    t->root > reg->reg.epoch || t->epoch < reg->reg.epoch)
			continue;
		all = t->from->at.end < n->at.begin &&
		      (!t->until || t->until->at.begin > n->at.end) &&
		      n->at.after[BOOT] < t->low;
		some = t->from->at.begin < n->at.end &&
		       (!t->until || t->until->at.end > n->at.begin) &&
		       n->at.before[BOOT] < t->high;
		if (must ? all : some)
			return true;
	}
	return false;
}

/*
 * One generation: its ticks
 */

struct life {
	const struct note *reg;
	const struct note **rec, **done;	/* ticks, and completions */
	unsigned int recs, dones;
	__u64 last_begin;	/* of the reads of its ticks */
	bool manual;
	int clock;
	__s64 low, high;	/* the first due time is between them */
};

static bool stepped(const struct moment *at)
{
	unsigned int i;

	for (i = 0; i < steps.n; i++)
		if (steps.note[i]->at.before[MONO] <= at->after[MONO] &&
		    steps.note[i]->at.after[MONO] >= at->before[MONO])
			return true;
	return false;
}

/* The latest time that the clock of @l has shown until @n */
static __s64 latest(const struct life *l, const struct note *n)
{
	__s64 time = n->at.after[l->clock];
	unsigned int i;

	for (i = 0; l->clock == REAL && i < steps.n; i++) {
		const struct moment *at = &steps.note[i]->at;

		if (at->before[MONO] > n->at.after[MONO] ||
		    at->after[MONO] < l->reg->at.before[MONO])
			continue;
		time = MAX(time, at->after[REAL]);
		time = MAX(time, at->before[REAL] + at->after[MONO] -
				 at->before[MONO]);
	}
	return time;
}

/* How many ticks are due by @time, if the first one is due at @first */
static __u64 due_by(const struct life *l, __s64 first, __s64 time)
{
	if (time < first)
		return 0;
	return l->reg->reg.period ? (time - first) / l->reg->reg.period + 1 : 1;
}

static void bad_tick(const struct life *l, unsigned int i, const char *why,
		     __u64 than)
{
	bad_note(l->rec[i], l->reg->reg.owner, why, than);
}

/* SKIP_LATE: the newest that is due; CATCH_UP: not more than max at once. */
static void check_catch_up(const struct life *l)
{
	const struct spottimer_register *reg = &l->reg->reg;
	__u64 max = 1, low = 0, high = 0, due_low, due_high, newest;
	unsigned int i;

	if (reg->policy == SPOTTIMER_CATCH_UP && reg->max_catch_up)
		max = reg->max_catch_up;
	/* low and high: how much the catch-up that is open has to deliver */
	for (i = 0; i < l->recs; i++) {
		const struct note *n = l->rec[i];
		__u64 s = n->rec.scheduled_index;

		newest = s + max - 1;
		due_low = due_by(l, l->high, n->at.before[l->clock]);
		due_high = due_by(l, l->low, latest(l, n));
		/* an adoption ends a catch-up, and skips for another reason */
		if (reg->owner)
			low = 0;
		if (l->clock == REAL && stepped(&n->at))
			due_low = 0;
		if (n->rec.skipped_ticks) {
			if (low)
				bad_tick(l, i, "skips ticks it owes:", low);
			if (!reg->owner && newest > due_high)
				bad_tick(l, i, "skips past", due_high);
			if (due_low > newest)
				bad_tick(l, i, "does not skip to", due_low);
			low = max - 1;
			high = max - 1;
			continue;
		}
		if (!high && due_low > newest)
			bad_tick(l, i, "catches up from behind", due_low);
		/* it goes on; or a new one begins, if it may be over */
		due_low = due_low > s ? MIN(due_low - s, max - 1) : 0;
		due_high = due_high > s ? MIN(due_high - s, max - 1) : 0;
		if (low) {
			low--;
			high--;
		} else {
			low = high ? 0 : due_low;
			high = MAX(high ? high - 1 : 0, due_high);
		}
	}
}

/* DELAY_NEXT: a period after the last completion */
static void check_delay(const struct life *l)
{
	const int c = l->clock;
	__s64 due = l->low;
	unsigned int i;

	for (i = 0; i < l->recs; i++) {
		if (l->rec[i]->rec.skipped_ticks)
			bad_tick(l, i, "delays, but skips", 0);
		/* that may be in the future of a clock that is set back */
		if (i && c == REAL)
			continue;
		if (latest(l, l->rec[i]) < due)
			bad_tick(l, i, "not delayed until", due);
		due = MAX(due, l->rec[i]->at.before[c]);
		if (l->manual && i < l->dones)
			due = MAX(due, l->done[i]->at.before[c]);
		due += l->reg->reg.period;
	}
}

/* G4: what was missed without a lease does not come after an adoption. */
static void check_adoptions(const struct life *l, unsigned int i)
{
	const struct owner *o = &owners[l->reg->file][l->reg->reg.owner];
	const struct note *n = l->rec[i];
	const struct term *t;

	for (t = o->term; t < o->term + o->terms; t++)
		if (t->voids && l->reg->at.end < t->from->at.begin &&
		    n->at.begin > t->from->at.end &&
		    n->rec.scheduled_index <=
		    due_by(l, l->high, t->from->at.before[l->clock]))
			bad_tick(l, i, "void since epoch", t->epoch);
}

static void check_ticks(const struct life *l)
{
	const struct spottimer_register *reg = &l->reg->reg;
	bool delay = reg->policy == SPOTTIMER_DELAY_NEXT;
	__u64 flags = SPOTTIMER_REC_TICK, last = 0;
	unsigned int i;

	flags |= l->manual ? SPOTTIMER_REC_MANUAL : 0;
	flags |= reg->period ? 0 : SPOTTIMER_REC_LAST;
	if (reg->flags & SPOTTIMER_REG_CRITICAL)
		flags |= SPOTTIMER_REC_CRITICAL;
	for (i = 0; i < l->recs; i++) {
		const struct spottimer_record *r = &l->rec[i]->rec;
		__u64 due = due_by(l, l->low, latest(l, l->rec[i]));

		if (r->delivery_index != i + 1)
			bad_tick(l, i, "delivery index is not", i + 1);
		if (r->scheduled_index <= last ||
		    r->scheduled_index < r->delivery_index ||
		    r->skipped_ticks != r->scheduled_index - last - 1)
			bad_tick(l, i, "indices after", last);
		last = r->scheduled_index;
		if (r->flags != flags || r->cookie != reg->cookie ||
		    r->owner != reg->owner || r->result)
			bad_tick(l, i, "not as registered", r->flags);
		if (!delay && r->scheduled_index > due)
			bad_tick(l, i, "early; due are", due);
		if (reg->owner && !admits(l->reg, l->rec[i], false))
			bad_tick(l, i, "no lease; epoch", reg->epoch);
		if (reg->owner && !delay && l->clock != REAL)
			check_adoptions(l, i);
	}
	if (delay)
		check_delay(l);
	else
		check_catch_up(l);
}

/*
 * One generation: its end
 */

/* Handlers counted by a query were started before it, the others after. */
static void check_query(const struct life *l, const struct note *n)
{
	const struct spottimer_query *q = &n->query;
	bool right = q->started <= l->recs && q->cookie == l->reg->reg.cookie &&
		     q->period == l->reg->reg.period &&
		     q->policy == l->reg->reg.policy;
	unsigned int i;

	for (i = 0; i < l->recs; i++)
		right &= i < q->started ? l->rec[i]->at.begin < n->at.end :
					  l->rec[i]->at.end > n->at.begin;
	if (right && q->started)
		right = l->rec[q->started - 1]->rec.scheduled_index ==
			q->scheduled;
	if (!right || (q->state == SPOTTIMER_ENDED && q->started != l->recs))
		bad_note(n, l->reg->reg.owner, "query; handlers were", l->recs);
}

/* The terminal result is that of the last handler; who knows if two overlap. */
static bool is_result(const struct life *l, __s32 result)
{
	const struct note **last = l->done + l->dones;

	if (!l->dones)
		return !result;
	return last[-1]->complete.result == result ||
	       (l->dones > 1 && last[-2]->at.end > last[-1]->at.begin);
}

/* What is wrong with a cancel that was accepted, or found an end (E1 to E6)? */
static const char *look_at_cancel(const struct life *l, const struct note *n)
{
	bool nowait = n->cancel.flags & SPOTTIMER_CANCEL_NOWAIT;
	const struct note *last = l->recs ? l->rec[l->recs - 1] : NULL;
	bool mine = last && l->manual && last->actor == n->actor;
	bool runs = last && l->manual && last->at.end < n->at.begin &&
		    (l->dones < l->recs ||
		     l->done[l->recs - 1]->at.begin > n->at.end);

	if (n->cancel.started != l->recs)
		return "does not count its handlers:";
	if (l->last_begin > n->at.end)
		return "before a handler of";
	switch (n->cancel.error) {
	case 0:
		if (runs || (l->manual && l->dones != l->recs) ||
		    (l->dones && l->done[l->dones - 1]->at.begin > n->at.end))
			return "before the end of a handler of";
		return is_result(l, n->cancel.result) ? NULL :
							"gives another result";
	case -EINPROGRESS:
		return l->manual && (nowait || mine) ? NULL : "could wait";
	default:
		return l->manual && !nowait && !(mine && runs) ? NULL :
								 "cannot wait";
	}
}

static bool is_accepted(const struct note *n)
{
	return n->kind == CANCEL &&
	       (!n->cancel.error || n->cancel.error == -EINPROGRESS ||
		n->cancel.error == -EINTR);
}

/* Those that cancelled all timers, this one perhaps among them (E7) */
static bool check_many(const struct life *l)
{
	const struct range *m = &many[l->reg->file];
	bool may_tell = false;
	unsigned int i;

	for (i = 0; i < m->n; i++) {
		const struct note *c = m->note[i];

		if (!(c->cancel.flags & SPOTTIMER_CANCEL_ALL) &&
		    c->key != l->reg->reg.owner)
			continue;
		may_tell |= c->cancel.flags & SPOTTIMER_CANCEL_NOWAIT &&
			    c->at.end > l->reg->at.begin;
		if (is_accepted(c) && l->last_begin > c->at.end &&
		    l->reg->at.end < c->at.begin)
			bad_note(l->reg, l->reg->reg.owner,
				 "went on after all were cancelled at",
				 c->at.begin);
	}
	return may_tell;
}

static void check_end(const struct life *l, const struct note **p,
		      unsigned int n)
{
	unsigned int ends = 0, told = 0;
	bool may_tell = check_many(l);
	const char *why;

	for (; n--; p++) {
		if ((*p)->kind == QUERY && !(*p)->query.error)
			check_query(l, *p);
		why = is_accepted(*p) ? look_at_cancel(l, *p) : NULL;
		if (why)
			bad_note(*p, l->reg->reg.owner, why, l->recs);
		told |= is_accepted(*p) &&
			(*p)->cancel.error == -EINPROGRESS &&
			(*p)->cancel.flags & SPOTTIMER_CANCEL_NOWAIT;
		if ((*p)->kind != RECORD ||
		    !((*p)->rec.flags & SPOTTIMER_REC_END))
			continue;
		ends++;
		if ((*p)->rec.delivery_index != l->recs || !l->recs ||
		    l->dones != l->recs || !is_result(l, (*p)->rec.result) ||
		    l->done[l->dones - 1]->at.begin > (*p)->at.end)
			bad_note(*p, 0, "END; handlers were", l->recs);
	}
	if (ends > (told | may_tell) || (ends < told && drained[l->reg->file]))
		bad_note(l->reg, l->reg->reg.owner, "END records:", ends);
}

/* Timers that have ended with their last handler, and so are in no counter */
static unsigned int ended_low, ended_high;

static void count_end(const struct life *l, const struct note **p,
		      unsigned int n)
{
	bool sure = l->recs && !l->reg->reg.period;

	for (; n--; p++)
		sure |= l->recs && is_accepted(*p) && (*p)->cancel.error;
	ended_low += sure;
	ended_high += sure || (l->recs && l->manual);
}

/* Put together what is known of a generation. False if it never was. */
static bool make_life(struct life *l, const struct note **p, unsigned int n)
{
	const struct note *reg = NULL;
	unsigned int i;

	l->recs = 0;
	l->dones = 0;
	l->last_begin = 0;
	for (i = 0; i < n; i++) {
		const struct note *t = p[i];

		if (t->kind == REGISTER && !t->reg.error)
			reg = t;
		else if (t->kind == REGISTER && t->reg.owner &&
			 (t->reg.error == -EKEYEXPIRED ||
			  (t->reg.error == -ESTALE && !t->generation)) &&
			 admits(t, t, true))
			bad_note(t, t->reg.owner, "refused, with epoch",
				 t->reg.epoch);
		else if (t->kind == COMPLETE && !t->complete.error)
			l->done[l->dones++] = t;
		else if (t->kind == RECORD && t->rec.flags & SPOTTIMER_REC_TICK)
			l->rec[l->recs++] = t;
	}
	l->reg = reg;
	if (!reg) {
		if (l->recs || l->dones)
			bad_note(p[0], 0, "was not registered", 0);
		return false;
	}
	for (i = 0; i < l->recs; i++)
		l->last_begin = MAX(l->last_begin, l->rec[i]->at.begin);
	qsort(l->rec, l->recs, sizeof(*l->rec), by_delivery);
	l->manual = reg->reg.flags & SPOTTIMER_REG_MANUAL;
	for (l->clock = 0; clocks[l->clock] != (int)reg->reg.clock;)
		l->clock++;
	l->low = reg->reg.first;
	l->high = reg->reg.first;
	if (!(reg->reg.flags & SPOTTIMER_REG_ABSTIME)) {
		/* no clock gets to half of the end of time */
		l->low = MIN(l->low, INT64_MAX / 2) + reg->at.before[l->clock];
		l->high = MIN(l->high, INT64_MAX / 2) + reg->at.after[l->clock];
		if (l->clock == REAL && stepped(&reg->at)) {
			/* who knows what time it was */
			l->low = INT64_MIN / 2;
			l->high = INT64_MAX;
		}
	}
	return true;
}

/*
 * All timers
 */

/* Handlers of one key: when they have begun for sure, and when they may end */
struct run {
	__u64 start, stop;
	const struct note *rec;
};

static int by_start(const void *a, const void *b)
{
	return compare(((struct run *)a)->start, ((struct run *)b)->start);
}

/* No two handlers of one key at once (D1) */
static void check_runs(struct run *run, unsigned int n)
{
	struct run *longest = run, *r;

	qsort(run, n, sizeof(*run), by_start);
	for (r = run + 1; r < run + n; r++) {
		if (r->start < longest->stop && longest->start < r->stop)
			bad_note(r->rec, r->rec->rec.owner,
				 "beside the handler of generation",
				 longest->rec->generation);
		if (r->stop > longest->stop)
			longest = r;
	}
}

static bool same_key(const struct note *a, const struct note *b)
{
	return a->about == b->about && a->file == b->file && a->key == b->key;
}

static void check_timers(const struct note **p, unsigned int n)
{
	struct life l = {
		.rec = calloc(n + 1, sizeof(*l.rec)),
		.done = calloc(n + 1, sizeof(*l.done)),
	};
	struct run *run = calloc(n + 1, sizeof(*run));
	unsigned int runs = 0, i, k;
	__u64 last_begin = 0;

	for (; n; p += i, n -= i) {
		for (i = 1; i < n && same_key(p[0], p[i]) &&
		     p[i]->generation == p[0]->generation;)
			i++;
		if (make_life(&l, p, i)) {
			const struct note *reg = l.reg;

			check_ticks(&l);
			check_end(&l, p, i);
			count_end(&l, p, i);
			if (reg->reg.owner && !admits(reg, reg, false))
				bad_note(reg, reg->reg.owner, "no lease", 0);
			if (l.manual ? l.dones > l.recs ||
			    l.dones + 1 < l.recs : l.dones)
				bad_note(reg, 0, "completions:", l.dones);
			if (last_begin > reg->at.end)
				bad_note(reg, 0, "the last one went on at",
					 last_begin);
			last_begin = MAX(last_begin, l.last_begin);
			for (k = 0; k < l.recs; k++)
				run[runs++] = (struct run) {
					l.rec[k]->at.end,
					!l.manual ? l.rec[k]->at.begin :
					k < l.dones ? l.done[k]->at.begin : ~0ULL,
					l.rec[k],
				};
		}
		if (i == n || !same_key(p[0], p[i])) {
			check_runs(run, runs);
			runs = 0;
			last_begin = 0;
		}
	}
	free(run);
	free(l.rec);
	free(l.done);
}

/* Put the notes of all actors in order. Returns where those of timers begin. */
static unsigned int sort_notes(void)
{
	unsigned int i, k, id;

	for (id = 0, notes.n = 0; id < ACTORS; id++)
		notes.n += shared->count[id];
	notes.note = calloc(notes.n + 1, sizeof(*notes.note));
	for (id = 0, k = 0; id < ACTORS; id++)
		for (i = 0; i < shared->count[id]; i++)
			notes.note[k++] = &actors[id].log[i];
	qsort(notes.note, notes.n, sizeof(*notes.note), by_order);

	memset(owners, 0, sizeof(owners));
	memset(many, 0, sizeof(many));
	memset(&steps, 0, sizeof(steps));
	for (i = 0; i < notes.n && notes.note[i]->about != A_TIMER; i++) {
		const struct note *n = notes.note[i];
		struct range *r = n->about == AN_OWNER ?
				  &owners[n->file][n->key].note :
				  n->about == MANY_TIMERS ? &many[n->file] :
							    &steps;

		r->note = r->note ?: &notes.note[i];
		r->n++;
	}
	return i;
}

static void check_round(void)
{
	unsigned int i = sort_notes(), k;
	struct owner *o;

	for (o = owners[0]; o < owners[FILES]; o++) {
		check_leases(o);
		for (k = 0; k < o->terms; k++)
			/* the last one of its epoch */
			if (k + 1 == o->terms ||
			    o->term[k + 1].epoch != o->term[k].epoch)
				check_lapse(o, &o->term[k],
					    drained[o->note.note[0]->file]);
	}
	check_timers(notes.note + i, notes.n - i);
	if (shared->violations)
		print_history();
	for (o = owners[0]; o < owners[FILES]; o++)
		free(o->term);
	free(notes.note);
}

/*
 * The end of a round: what lives must go on, and the counts must agree
 */

/* Read, and complete, for a while. Returns true if there was nothing more. */
static bool drain(struct actor *a, int file, unsigned int reads, bool complete)
{
	while (reads--) {
		unsigned int count = shared->count[MAIN], last;
		bool something = readable(files[file]);
		ssize_t ret = read_once(a, file, false);

		if (ret == -EAGAIN && something)
			violation(file, 0, 0, 0, "readable, but nothing there");
		if (ret == -EAGAIN)
			return true;
		for (last = shared->count[MAIN]; count < last; count++)
			if (complete && begins_handler(&a->log[count]))
				complete_handler(a, &a->log[count]);
	}
	return false;
}

static bool is_due_soon(const struct spottimer_query *q)
{
	return !q->error && q->state != SPOTTIMER_ENDED &&
	       q->remaining < SOON * MSEC;
}

/* Nothing is lost: every timer that is due soon fires, or has ended. */
static void see_all_fire(struct actor *a, int file)
{
	struct spottimer_cancel c = { .flags = SPOTTIMER_CANCEL_NOWAIT };
	struct spottimer_query first[ALL_KEYS], q;
	unsigned int left, i;
	__s64 since = 0;

	for (i = 0; i < ALL_KEYS; i++)
		first[i] = query(files[file], i, 0);
	do {
		drain(a, file, 30, true);
		for (i = 0, left = 0; i < ALL_KEYS; i++) {
			/* not to take notes without end while others are late */
			c.key = i;
			c.generation = 0;
			if (first[i].error == -EALREADY &&
			    shared->count[MAIN] > LOG / 4) {
				submit(a, file, CANCEL, &c, 1);
				first[i].error = -ECANCELED;
			}
			if (!is_due_soon(&first[i]))
				continue;
			q = query(files[file], i, first[i].generation);
			if (q.state == SPOTTIMER_ENDED ||
			    q.started != first[i].started)
				first[i].error = -EALREADY;
			else
				left++;
		}
	} while (left && look_again(&since));
	for (i = 0; left && i < ALL_KEYS; i++)
		if (is_due_soon(&first[i]))
			violation(file, i, first[i].owner, shared->stamp,
				  "lost: generation %llu, state %u, due in %lld",
				  first[i].generation, first[i].state,
				  first[i].remaining);
}

static void lease_all(struct actor *a, int file, __u32 op)
{
	struct spottimer_lease l = { .op = op };

	if (op == SPOTTIMER_LEASE_GRANT) {
		l.flags = SPOTTIMER_LEASE_ADOPT;
		l.deadline = HOUR;
	}
	for (l.owner = 1; l.owner <= OWNERS; l.owner++) {
		__u64 *epoch = &shared->epoch[file][l.owner];

		*epoch += op == SPOTTIMER_LEASE_GRANT;
		l.epoch = *epoch;
		submit(a, file, LEASE, &l, 1);
	}
}

static void expect_count(int file, const char *name, long long expected)
{
	long long is = read_fdinfo(files[file], name);

	if (is != expected)
		violation(file, 0, 0, 0, "fdinfo %s is %lld, not %lld", name, is,
			  expected);
}

static void settle(struct actor *a, int file)
{
	static const char * const counts[] = {
		"registered", "pending", "ready", "running", "held"
	};
	struct spottimer_cancel all = { .flags = SPOTTIMER_CANCEL_ALL };
	unsigned int alive = 0, i;

	lease_all(a, file, SPOTTIMER_LEASE_GRANT);
	see_all_fire(a, file);
	lease_all(a, file, SPOTTIMER_LEASE_REVOKE);
	drained[file] = drain(a, file, 100, true);
	for (i = 0; i < ALL_KEYS; i++) {
		struct spottimer_query q = query(files[file], i, 0);

		alive += !q.error && q.state != SPOTTIMER_ENDED;
	}
	if (drained[file])
		expect_count(file, "registered", alive);
	expect_count(file, "running", 0);
	expect_count(file, "owners", OWNERS);
	if (one_in(a, 2)) {
		/* to be closed as it is, with handlers that run */
		drain(a, file, 5, false);
		return;
	}
	submit(a, file, CANCEL, &all, 1);
	drained[file] = drain(a, file, 100, true);
	if (all.error || !drained[file])
		violation(file, 0, 0, 0, "cancel all: %d, or records after it",
			  all.error);
	for (i = 0; i < ARRAY_LEN(counts); i++)
		expect_count(file, counts[i], 0);
}

enum { STARTED, CANCELLED, CALLED, CANDIDATES, READY, REFUSED, COUNTERS };

static const char * const counter_name[] = {
	"started", "cancelled", "called", "candidates", "ready", "refused",
};

/* All files are closed: what was started has ended, one way or another (J1). */
static void check_counters(const long long *before)
{
	long long c[COUNTERS], ended, other;
	int i;

	for (i = 0; i < COUNTERS; i++)
		c[i] = counter(counter_name[i]) - before[i];
	ended = c[STARTED] - c[CANCELLED] - c[CALLED];
	other = c[CANDIDATES] - c[READY] - c[CALLED] - c[REFUSED];
	if (ended < ended_low || ended > ended_high)
		violation(0, 0, 0, 0, "%lld ended with a handler, not %u to %u",
			  ended, ended_low, ended_high);
	/* on a clock that can be set a candidate may have to wait again */
	if (other < 0 || (other && !may_set_clock()))
		violation(0, 0, 0, 0, "%lld candidates too many", other);
	if (!wait_hrtimers(0))
		violation(0, 0, 0, 0, "an hrtimer, and nothing to do");
}

/*
 * A round
 */

static void start(unsigned int id, void *(*run)(void *))
{
	actors[id].started = !pthread_create(&actors[id].thread, NULL, run,
					     &actors[id]);
	if (!actors[id].started)
		violation(0, 0, 0, 0, "no thread for actor %u", id);
}

/* Signals end whatever they wait for. */
static void stop(unsigned int id)
{
	while (actors[id].started &&
	       pthread_tryjoin_np(actors[id].thread, NULL) == EBUSY) {
		pthread_kill(actors[id].thread, SIGUSR1);
		usleep(1000);
	}
	actors[id].started = false;
}

static void start_process(void)
{
	process = fork_with_us();
	if (process)
		return;
	read_all(&actors[PROCESS]);
	_exit(0);
}

static void stop_process(void)
{
	while (!waitpid(process, NULL, WNOHANG)) {
		kill(process, SIGCONT);
		kill(process, SIGUSR1);
		usleep(1000);
	}
}

static void prepare_actors(__u64 seed)
{
	__u64 last = shared->stamp;
	unsigned int id;

	memset(shared, 0, sizeof(*shared));
	shared->stamp = last;
	ended_low = 0;
	ended_high = 0;
	for (id = 0; id < ACTORS; id++) {
		struct actor *a = &actors[id];

		a->id = id;
		a->log = logs + id * LOG;
		a->random = (seed * ACTORS + id + 1) * 0x9e3779b97f4a7c15ULL;
		memset(a->known, 0, sizeof(a->known));
		if (!a->border)
			a->border = map_border(PROT_NONE);
	}
}

/* Everything at once, for a while. */
static void let_loose(void)
{
	__s64 until = now() + ROUND * MSEC;
	unsigned int id;

	start_process();
	for (id = WORKER; id < ACTORS; id++)
		start(id, work);
	for (id = READER; id < PROCESS; id++)
		start(id, read_all);
	start(LEASER, lease_out);
	start(COMPLETER, complete_all);
	start(HOTPLUG, come_and_go);
	start(WEATHER, be_weather);
	while (now() < until && !get(shared->full))
		usleep(5000);

	set(shared->phase, READ);
	stop(WEATHER);
	stop(HOTPLUG);
	stop(LEASER);
	for (id = WORKER; id < ACTORS; id++)
		stop(id);
	set(shared->phase, COMPLETE_REST);
	for (id = READER; id < PROCESS; id++)
		stop(id);
	stop_process();
	set(shared->phase, OVER);
	stop(COMPLETER);
}

/* Returns false if the contract was broken. */
static bool one_round(__u64 seed)
{
	long long budget = read_param("budget");
	long long budget_ns = read_param("budget_ns");
	long long counters[COUNTERS];
	int i;

	prepare_actors(seed);
	for (i = 0; i < COUNTERS; i++)
		counters[i] = counter(counter_name[i]);
	for (i = 0; i < FILES; i++)
		files[i] = spot_open(0);
	let_loose();
	write_param("budget", budget);
	write_param("budget_ns", budget_ns);
	step_clock(&actors[MAIN], 0);
	for (i = 0; i < FILES; i++)
		settle(&actors[MAIN], i);
	for (i = 0; i < FILES; i++)
		close(files[i]);
	check_round();
	if (counters[0] >= 0)
		check_counters(counters);
	return !shared->violations;
}

/* Rounds until time is up or something is wrong. */
static bool torture(void)
{
	__s64 until = now() + number_from_env("SPOT_TORTURE_SECONDS", 8) * SEC;
	__u64 seed = number_from_env("SPOT_SEED", now()), rounds = 0, id, taken = 0;
	bool right;

	real_offset = now_on(CLOCK_REALTIME) - now();
	do {
		right = one_round(seed + rounds++);
		for (id = 0; id < ACTORS; id++)
			taken += shared->count[id];
	} while (right && now() < until);
	printf("# %llu rounds, %llu notes, SPOT_SEED=%llu\n", rounds, taken,
	       seed + rounds - 1);
	return right;
}

FIXTURE(torture) {
};

FIXTURE_SETUP(torture)
{
	struct spottimer_info info;
	int fd = spot_open(0);

	ASSERT_EQ(0, spot_info(fd, &info));
	close(fd);
	known_clocks = info.clocks;
	ASSERT_EQ(0, catch_signal(SIGUSR1));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	logs = mmap(NULL, (size_t)ACTORS * LOG * sizeof(*logs),
		    PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)shared);
	ASSERT_NE(MAP_FAILED, (void *)logs);
}

FIXTURE_TEARDOWN(torture)
{
	set_online(1, 1);
	step_clock(&actors[MAIN], 0);
}

TEST_F_TIMEOUT(torture, a12_b2_c2_d1_e1_e2_f3_g3_j1_torture_by_model, 7200)
{
	own_keys = true;
	EXPECT_TRUE(torture());
}

TEST_F_TIMEOUT(torture, b2_c2_d1_e1_e2_e4_e7_g3_case29_same_keys, 7200)
{
	own_keys = false;
	EXPECT_TRUE(torture());
}

TEST_HARNESS_MAIN
