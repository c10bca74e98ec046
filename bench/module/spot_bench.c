// SPDX-License-Identifier: GPL-2.0
/*
 * What a timer costs in the kernel: those of spottimer beside the kernel's own.
 *
 * Everything is measured while the module is loaded, on one CPU, and printed to
 * the kernel's log, a line of JSON for each figure:
 *
 *	spot_bench: {"what":"kernel-arm","who":"hrtimer","n":1000,"round":1,"value":9.9,"unit":"ns"}
 *
 * what:
 *	kernel-arm	start n timers that are idle
 *	kernel-rearm	start them again while they wait, for another time
 *	kernel-cancel	cancel them while they wait
 *	kernel-pair	start and cancel one timer, n times
 *	kernel-fire	all of them are due at once, and their functions do nothing:
 *			the time that is taken from what else the CPU does. Only
 *			on a machine with one CPU it is sure to be this one.
 * who:
 *	loop		nothing: what the measuring itself costs in each figure
 *	timer_list	mod_timer() and timer_delete()
 *	hrtimer		hrtimer_start_range_ns() and hrtimer_cancel()
 *	spot_timer	spot_timer_start() and spot_timer_cancel()
 *	spot_timer-abs	the same, where the caller has the time at hand: it does not
 *			read the clock first
 *	spot_timer-batch spot_batch_start() and spot_batch_cancel() of cores, in
 *			batches of 64 under a lock
 *
 * Values are per timer. The times are 10 s to 1 h ahead, the timers are part of
 * larger objects and are visited in an order without locality; all of that is
 * pseudo-random, the same in each run. A timeout is given from now on, as most are,
 * but for spot_timer-abs.
 *
 * Where time is counted in instructions (scripts/vm --icount) all figures are, and
 * two runs give the same.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/timer.h>

#include "compat.h"
#include "spot_timer.h"

static unsigned int n[8] = { 1000, 10000, 100000 };
static unsigned int sizes = 3;
module_param_array(n, uint, &sizes, 0444);
MODULE_PARM_DESC(n, "numbers of timers, up to 8 (default 1000,10000,100000)");

static unsigned int rounds = 1;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often to measure (default 1)");

/* Timers between two chances for others to run; the clock stands meanwhile */
#define BENCH_CHUNK	1024U

/* Cores in a batch, for those who make batches; a divisor of the above */
#define BENCH_BATCH	64U

/* By how much a timer may be late, for those that know of it */
#define BENCH_SLACK	NSEC_PER_MSEC

/**
 * struct bench_way - a kind of timer
 * @name: its name
 * @size: of an object that holds one
 * @setup: prepare an object
 * @start: start its timer for the time it has, or again for its other time
 * @start_at: start its timer for that time, CLOCK_MONOTONIC and jiffies
 * @cancel: cancel its timer
 * @begin: begin a batch of starts or cancels, or NULL
 * @end: end it, or NULL
 * @stop: the same, and nobody is at the timer any more
 * @pending: whether it waits
 */
struct bench_way {
	const char *name;
	size_t size;
	void (*setup)(void *object, u64 ns, u64 other_ns);
	void (*start)(void *object, bool other);
	void (*start_at)(void *object, ktime_t time, unsigned long jiffy);
	void (*cancel)(void *object);
	void (*begin)(void);
	void (*end)(void);
	void (*stop)(void *object);
	bool (*pending)(void *object);
};

/* Functions of timers that were called, and how many will be */
static unsigned int fired, expected;

/*
 * timer_list
 */

struct bench_list {
	struct timer_list timer;
	unsigned long timeout[2];
};

static void list_fn(struct timer_list *timer)
{
	fired++;
}

static void list_setup(void *object, u64 ns, u64 other_ns)
{
	struct bench_list *o = object;

	timer_setup(&o->timer, list_fn, 0);
	o->timeout[0] = nsecs_to_jiffies(ns);
	o->timeout[1] = nsecs_to_jiffies(other_ns);
}

static void list_start(void *object, bool other)
{
	struct bench_list *o = object;

	mod_timer(&o->timer, jiffies + o->timeout[other]);
}

static void list_start_at(void *object, ktime_t time, unsigned long jiffy)
{
	struct bench_list *o = object;

	mod_timer(&o->timer, jiffy);
}

static void list_cancel(void *object)
{
	struct bench_list *o = object;

	timer_delete(&o->timer);
}

static void list_stop(void *object)
{
	struct bench_list *o = object;

	timer_delete_sync(&o->timer);
}

static bool list_pending(void *object)
{
	struct bench_list *o = object;

	return timer_pending(&o->timer);
}

static const struct bench_way bench_list = {
	.name		= "timer_list",
	.size		= sizeof(struct bench_list),
	.setup		= list_setup,
	.start		= list_start,
	.start_at	= list_start_at,
	.cancel		= list_cancel,
	.stop		= list_stop,
	.pending	= list_pending,
};

/*
 * hrtimer
 */

struct bench_hrtimer {
	struct hrtimer timer;
	u64 timeout[2];
};

static enum hrtimer_restart hrtimer_fn(struct hrtimer *timer)
{
	fired++;
	return HRTIMER_NORESTART;
}

static void bench_hrtimer_setup(void *object, u64 ns, u64 other_ns)
{
	struct bench_hrtimer *o = object;

	hrtimer_setup(&o->timer, hrtimer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	o->timeout[0] = ns;
	o->timeout[1] = other_ns;
}

static void bench_hrtimer_start(void *object, bool other)
{
	struct bench_hrtimer *o = object;

	hrtimer_start_range_ns(&o->timer, ns_to_ktime(o->timeout[other]),
			       BENCH_SLACK, HRTIMER_MODE_REL);
}

static void bench_hrtimer_start_at(void *object, ktime_t time,
				   unsigned long jiffy)
{
	struct bench_hrtimer *o = object;

	hrtimer_start_range_ns(&o->timer, time, BENCH_SLACK, HRTIMER_MODE_ABS);
}

static void bench_hrtimer_cancel(void *object)
{
	struct bench_hrtimer *o = object;

	hrtimer_cancel(&o->timer);
}

static bool bench_hrtimer_pending(void *object)
{
	struct bench_hrtimer *o = object;

	return hrtimer_is_queued(&o->timer);
}

static const struct bench_way bench_hrtimer = {
	.name		= "hrtimer",
	.size		= sizeof(struct bench_hrtimer),
	.setup		= bench_hrtimer_setup,
	.start		= bench_hrtimer_start,
	.start_at	= bench_hrtimer_start_at,
	.cancel		= bench_hrtimer_cancel,
	.stop		= bench_hrtimer_cancel,
	.pending	= bench_hrtimer_pending,
};

/*
 * spot_timer
 */

struct bench_spot {
	struct spot_timer timer;
	u64 timeout[2];
};

static enum spot_verdict spot_fn(struct spot_timer *timer,
				 const struct spot_tick *tick)
{
	fired++;
	return SPOT_DONE;
}

static void spot_setup(void *object, u64 ns, u64 other_ns)
{
	struct bench_spot *o = object;

	spot_timer_setup(&o->timer, spot_fn, SPOT_MONOTONIC, 0);
	o->timeout[0] = ns;
	o->timeout[1] = other_ns;
}

static void spot_start_at(void *object, ktime_t time, unsigned long jiffy)
{
	struct bench_spot *o = object;
	const struct spot_schedule when = {
		.first = time,
		.slack = BENCH_SLACK,
		.max = SPOT_SKIP_LATE,
	};

	spot_timer_start(&o->timer, &when);
}

static void spot_start(void *object, bool other)
{
	struct bench_spot *o = object;

	spot_start_at(o, spot_clock_now(SPOT_MONOTONIC) + o->timeout[other], 0);
}

static void spot_cancel(void *object)
{
	struct bench_spot *o = object;

	spot_timer_cancel(&o->timer, 0, NULL);
}

static void spot_stop(void *object)
{
	struct bench_spot *o = object;

	spot_timer_cancel_sync(&o->timer, 0, NULL);
}

static bool spot_pending(void *object)
{
	struct bench_spot *o = object;

	return spot_core_state(&o->timer.core) == SPOT_PENDING;
}

static const struct bench_way bench_spot = {
	.name		= "spot_timer",
	.size		= sizeof(struct bench_spot),
	.setup		= spot_setup,
	.start		= spot_start,
	.start_at	= spot_start_at,
	.cancel		= spot_cancel,
	.stop		= spot_stop,
	.pending	= spot_pending,
};

/*
 * spot_timer, by a time that is known
 */

static void spot_abs_setup(void *object, u64 ns, u64 other_ns)
{
	s64 now = spot_clock_now(SPOT_MONOTONIC);

	spot_setup(object, now + ns, now + other_ns);
}

static void spot_abs_start(void *object, bool other)
{
	struct bench_spot *o = object;

	spot_start_at(o, o->timeout[other], 0);
}

static const struct bench_way bench_spot_abs = {
	.name		= "spot_timer-abs",
	.size		= sizeof(struct bench_spot),
	.setup		= spot_abs_setup,
	.start		= spot_abs_start,
	.start_at	= spot_start_at,
	.cancel		= spot_cancel,
	.stop		= spot_stop,
	.pending	= spot_pending,
};

/*
 * Cores, in batches
 */

struct bench_core {
	struct spot_core core;
	u64 timeout[2];
};

static DEFINE_SPINLOCK(core_lock);	/* serialises calls on cores */
static struct spot_queue core_queue;
static struct spot_batch core_batch;

static void core_notify(struct spot_queue *queue)
{
}

static void core_setup(void *object, u64 ns, u64 other_ns)
{
	struct bench_core *o = object;

	spot_core_init_queued(&o->core, SPOT_MONOTONIC, false, &core_queue);
	o->timeout[0] = ns;
	o->timeout[1] = other_ns;
}

/* Sparse cannot follow that a lock is held from here to there, and is not told. */
static void core_begin(void)
{
	spin_lock_bh(&core_lock);
	__release(&core_lock);
	spot_batch_begin(&core_batch);
}

static void core_end(void)
{
	spot_batch_end(&core_batch);
	__acquire(&core_lock);
	spin_unlock_bh(&core_lock);
}

static void core_start(void *object, bool other)
{
	struct bench_core *o = object;

	if (other)
		spot_batch_cancel(&core_batch, &o->core);
	o->core.entry.deadline = spot_batch_now(&core_batch, SPOT_MONOTONIC) +
				 o->timeout[other];
	o->core.entry.slack = spot_core_slack(BENCH_SLACK);
	spot_overrun_init(&o->core.overrun, 0, SPOT_SKIP_LATE);
	spot_batch_start(&core_batch, &o->core);
}

static void core_cancel(void *object)
{
	struct bench_core *o = object;

	spot_batch_cancel(&core_batch, &o->core);
}

static void core_stop(void *object)
{
	core_begin();
	core_cancel(object);
	core_end();
}

static bool core_pending(void *object)
{
	struct bench_core *o = object;

	return spot_core_state(&o->core) == SPOT_PENDING;
}

static const struct bench_way bench_core = {
	.name		= "spot_timer-batch",
	.size		= sizeof(struct bench_core),
	.setup		= core_setup,
	.start		= core_start,
	.cancel		= core_cancel,
	.begin		= core_begin,
	.end		= core_end,
	.stop		= core_stop,
	.pending	= core_pending,
};

/*
 * Nothing
 */

static void loop_setup(void *object, u64 ns, u64 other_ns)
{
}

static void loop_start(void *object, bool other)
{
	barrier_data(object);
}

static void loop_cancel(void *object)
{
	barrier_data(object);
}

static const struct bench_way bench_loop = {
	.name	= "loop",
	.size	= 1,
	.setup	= loop_setup,
	.start	= loop_start,
	.cancel	= loop_cancel,
	.stop	= loop_cancel,
};

/*
 * Measuring
 */

/**
 * struct bench - what is being measured
 * @round: which round
 * @n: number of timers
 * @order: in which order to visit them
 * @objects: those that hold the timers
 */
struct bench {
	unsigned int round;
	unsigned int n;
	u32 *order;
	void *objects;
};

/* A xorshift generator: numbers that are the same on every kernel. */
static u64 bench_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A time that a timer has, 10 s to 1 h. */
static u64 bench_timeout(u64 *state)
{
	u32 ms;

	div_u64_rem(bench_random(state), 3590 * MSEC_PER_SEC, &ms);
	return (10 * MSEC_PER_SEC + ms) * (u64)NSEC_PER_MSEC;
}

static void bench_shuffle(struct bench *b)
{
	u64 state = 0x5907;
	unsigned int i;
	u32 j;

	for (i = 0; i < b->n; i++) {
		div_u64_rem(bench_random(&state), i + 1, &j);
		b->order[i] = b->order[j];
		b->order[j] = i;
	}
}

/* Report that @what took @ns for all timers. */
static void bench_report(const struct bench *b, const struct bench_way *way,
			 const char *what, u64 ns)
{
	u64 tenths = div_u64(ns * 10 + b->n / 2, b->n);
	u32 tenth;

	tenths = div_u64_rem(tenths, 10, &tenth);
	pr_info("{\"what\":\"kernel-%s\",\"who\":\"%s\",\"n\":%u,\"round\":%u,\"value\":%llu.%u,\"unit\":\"ns\"}\n",
		what, way->name, b->n, b->round, tenths, tenth);
}

/*
 * What follows is compiled once for each way, as the operations would be in a
 * module that uses the one or the other.
 */

static __always_inline void *bench_object(const struct bench *b,
					  const struct bench_way *way,
					  unsigned int i)
{
	return b->objects + b->order[i] * way->size;
}

enum bench_op {
	BENCH_START,
	BENCH_START_OTHER,
	BENCH_CANCEL,
	BENCH_PAIR,
};

/*
 * Do @op to each timer; to the first one n times if it is a pair. Return: how
 * long that took.
 */
static __always_inline u64 bench_each(const struct bench *b,
				      const struct bench_way *way,
				      const char *what, enum bench_op op)
{
	void *first = bench_object(b, way, 0);
	unsigned int i = 0;
	u64 sum = 0;

	while (i < b->n) {
		unsigned int end = min(i + BENCH_CHUNK, b->n);
		u64 begin = ktime_get_ns();

		for (; i < end; i++) {
			void *object = op == BENCH_PAIR ? first :
				       bench_object(b, way, i);

			if (way->begin && !(i % BENCH_BATCH))
				way->begin();
			if (op == BENCH_CANCEL)
				way->cancel(object);
			else
				way->start(object, op == BENCH_START_OTHER);
			if (op == BENCH_PAIR)
				way->cancel(object);
			if (way->end && (i % BENCH_BATCH == BENCH_BATCH - 1 ||
					 i == end - 1))
				way->end();
		}
		sum += ktime_get_ns() - begin;
		cond_resched();
	}
	bench_report(b, way, what, sum);
	return sum;
}

/* See that what was measured was done. */
static __always_inline int bench_check(const struct bench *b,
				       const struct bench_way *way,
				       unsigned int want)
{
	unsigned int i, pending = 0;

	if (!way->pending)
		return 0;
	for (i = 0; i < b->n; i++)
		pending += way->pending(bench_object(b, way, i));
	if (pending == want)
		return 0;
	pr_err("%u timers of %s wait, and not %u\n", pending, way->name, want);
	return -EIO;
}

/*
 * Wait until all timers have fired, and find the time that it took from us: we
 * look at the clock all the time, and where it leaps something else ran.
 */
static int bench_stolen(u64 *stolen)
{
	u64 last, least = U64_MAX, limit;
	unsigned int i;
	bool done;

	last = ktime_get_ns();
	for (i = 0; i < 1000; i++) {
		u64 now = ktime_get_ns();

		cond_resched();
		least = min(least, now - last);
		last = now;
	}
	limit = last + 100 * (u64)NSEC_PER_SEC;

	*stolen = 0;
	do {
		u64 now;

		/* first, so that what the last of them took is seen, too */
		done = READ_ONCE(fired) == expected;
		now = ktime_get_ns();
		cond_resched();
		if (now - last > 8 * least)
			*stolen += now - last - least;
		last = now;
		if (now > limit)
			return -ETIME;
	} while (!done);
	return 0;
}

/* To start all timers takes about as long as @arm. */
static __always_inline int bench_fire(const struct bench *b,
				      const struct bench_way *way, u64 arm)
{
	u64 ahead = 100 * (u64)NSEC_PER_MSEC + 4 * arm;
	unsigned long jiffy = jiffies + nsecs_to_jiffies(ahead);
	ktime_t time = ktime_add_ns(ktime_get(), ahead);
	s64 left;
	u64 stolen;
	unsigned int i;
	int ret;

	WRITE_ONCE(fired, 0);
	expected = b->n;
	for (i = 0; i < b->n; i++) {
		way->start_at(bench_object(b, way, i), time, jiffy);
		if (!(i % BENCH_CHUNK))
			cond_resched();
	}

	/* sleep nearly to the end; not by jiffies, which may be too long */
	left = ktime_us_delta(time, ktime_get()) - 20 * USEC_PER_MSEC;
	if (left > 0)
		usleep_range(left, left + USEC_PER_MSEC);
	if (READ_ONCE(fired)) {
		pr_warn("%s: too slow, no figure for kernel-fire\n", way->name);
		return 0;
	}
	ret = bench_stolen(&stolen);
	if (ret) {
		pr_err("%u timers of %s have fired, and not %u\n", fired,
		       way->name, expected);
		return ret;
	}
	bench_report(b, way, "fire", stolen);
	return 0;
}

static __always_inline int bench_measure(struct bench *b,
					 const struct bench_way *way)
{
	u64 arm, state = 0x5eed;
	unsigned int i;
	int ret;

	b->objects = kvcalloc(b->n, way->size, GFP_KERNEL);
	if (!b->objects)
		return -ENOMEM;
	for (i = 0; i < b->n; i++) {
		u64 ns = bench_timeout(&state);

		way->setup(b->objects + i * way->size, ns,
			   bench_timeout(&state));
	}

	arm = bench_each(b, way, "arm", BENCH_START);
	ret = bench_check(b, way, b->n);
	bench_each(b, way, "rearm", BENCH_START_OTHER);
	ret = ret ?: bench_check(b, way, b->n);
	bench_each(b, way, "cancel", BENCH_CANCEL);
	ret = ret ?: bench_check(b, way, 0);
	bench_each(b, way, "pair", BENCH_PAIR);
	ret = ret ?: bench_check(b, way, 0);
	if (!ret && way->start_at)
		ret = bench_fire(b, way, arm);

	for (i = 0; i < b->n; i++)
		way->stop(b->objects + i * way->size);
	kvfree(b->objects);
	return ret;
}

static noinline int bench_measure_loop(struct bench *b)
{
	return bench_measure(b, &bench_loop);
}

static noinline int bench_measure_list(struct bench *b)
{
	return bench_measure(b, &bench_list);
}

static noinline int bench_measure_hrtimer(struct bench *b)
{
	return bench_measure(b, &bench_hrtimer);
}

static noinline int bench_measure_spot(struct bench *b)
{
	return bench_measure(b, &bench_spot);
}

static noinline int bench_measure_spot_abs(struct bench *b)
{
	return bench_measure(b, &bench_spot_abs);
}

static noinline int bench_measure_core(struct bench *b)
{
	return bench_measure(b, &bench_core);
}

static int bench_round(struct bench *b)
{
	int ret;

	b->order = kvcalloc(b->n, sizeof(*b->order), GFP_KERNEL);
	if (!b->order)
		return -ENOMEM;
	bench_shuffle(b);
	ret = bench_measure_loop(b);
	ret = ret ?: bench_measure_list(b);
	ret = ret ?: bench_measure_hrtimer(b);
	ret = ret ?: bench_measure_spot(b);
	ret = ret ?: bench_measure_spot_abs(b);
	ret = ret ?: bench_measure_core(b);
	kvfree(b->order);
	return ret;
}

static int __init bench_init(void)
{
	struct bench b;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < sizes; i++)
		if (!n[i] || n[i] > 10 * 1000 * 1000)
			return -EINVAL;
	spot_queue_init(&core_queue, core_notify);

	/* all on one CPU, but others may run */
	migrate_disable();
	for (b.round = 1; !ret && b.round <= rounds; b.round++) {
		for (i = 0; !ret && i < sizes; i++) {
			b.n = n[i];
			ret = bench_round(&b);
		}
	}
	migrate_enable();
	return ret;
}

/* Nothing of us waits any more, so there is nothing to be done. */
static void __exit bench_exit(void)
{
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("benchmark: the cost of timers in the kernel");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "SPOTTIMER");
