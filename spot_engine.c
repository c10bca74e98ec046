// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: one wheel per CPU and clock, and the life of what waits there.
 *
 * Overview
 * --------
 * Every CPU has a struct spot_cpu, and in it for every clock a base: a pair of
 * wheels, one for critical timers and one for the others, and one pinned
 * hrtimer that expires in softirq. The hrtimer is armed for the next bucket
 * that holds something and for nothing else: not every wheel tick, and not at
 * all while both wheels are empty. A timer is started on the CPU that starts
 * it.
 *
 * When an hrtimer fires, one *pass* empties the CPU's critical wheels of all
 * that is due, then takes what is due out of the others until the budget, in
 * timers or in time, is used up. Moving a timer down in a cascade costs as much
 * of it as expiring one. What remains waits for the next pass, which comes after
 * as long as the last one took, so that softirq gets half of the CPU at the most.
 *
 * What waits is the core of a timer (struct spot_core); what makes a timer of it
 * is on top: a function in spot_timer.c, a key and a generation in spot_dev.c. A
 * core that is due either is given to a function, or goes on its queue and is
 * READY until the queue's user takes it. From there on it is in no wheel: what
 * comes due until its handler has completed is computed by then, not counted
 * tick by tick.
 *
 *             start             expiry            take
 *     IDLE ----------> PENDING --------> READY --------> RUNNING
 *      ^                | ^ | ^            |              |  |
 *      |     cancel     | |  \ \  hold     |              |  |
 *      +----------------+ |   \ +------- HELD <-----------+  |
 *      |                  |    expiry, refused (lease)       |
 *      |                  +------------- complete -----------+
 *      +-------------------------------- complete, no more --+
 *
 * Locks
 * -----
 * spot_cpu.expiry_lock: held by a pass from its begin to its end, across the
 *   functions that it calls. So to take it and let it go is to wait for a pass,
 *   and on PREEMPT_RT, where a pass can be preempted, to lend it one's priority.
 * spot_cpu.lock: protects the bases and their wheels, and of every core whose
 *   flags name this CPU the flags, and the wheel entry while it is PENDING; of a
 *   timer with a function, all of it. It is taken with bottom halves disabled.
 *   Who has to hold two of them takes the one at the lower address first.
 * spot_queue.lock: protects the lists of a queue.
 *
 * They nest in this order. expiry_lock is first because a pass drops and takes
 * spot_cpu.lock around every function that it calls. The queue is last because
 * a pass finds out which queue it needs while it holds the CPU's lock. A user's
 * own lock, under which it serialises calls on its cores, comes before all of
 * them, and so cannot be taken in a queue's notify function.
 *
 * To find the lock of a core one has to read its flags, lock the CPU that they
 * name, and look whether they still do (spot_batch_lock_core()). A core moves from
 * one CPU to another under the locks of both.
 *
 * A queued core is its user's to serialise, but for its expiry: PENDING to READY
 * or HELD happens in softirq under spot_cpu.lock. Out of the other states only
 * the user's own calls lead, which is why those need no lock here for cores that
 * are not PENDING.
 *
 * A clock that is set
 * -------------------
 * CLOCK_REALTIME may jump. Where it jumps forward, the hrtimer fires, for the
 * kernel looks at those of that clock whenever it is set, and a pass meets a jump
 * as it meets a stall. Where it jumps back nobody is told, and nobody has to be:
 * what waits for a time to come goes on waiting for it. But the wheel is ahead
 * of the clock then, and would keep a new timer until the clock has caught up.
 * So whoever is about to add to that wheel or to expire from it reads the clock
 * under the lock, sees that the wheel is ahead, and rewinds it.
 *
 * What is due already, or at the next wheel tick, does not wait for a time of
 * that clock, which may be an hour away by then; it waits by CLOCK_MONOTONIC, for
 * which spot_cpu.soon is, and is placed again if it turns out not to be due.
 *
 * Lifetimes
 * ---------
 * A core belongs to its user, who may free it when it is IDLE and no pass is at
 * it. A pass does not touch a core after its function was called. After a queued
 * one was put on its queue and spot_cpu.lock was released, no pass touches it; the
 * queue itself may be notified a little later, but within an RCU read-side
 * section.
 *
 * CPU hotplug
 * -----------
 * The timers of a CPU that has died move to the one that buries it. Until then
 * they are in their wheel, with an hrtimer that the kernel has moved to a live
 * CPU or is about to; a pass there does no harm, since it goes by the lock of
 * the CPU whose timers it expires, and that CPU itself starts none any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "spot_lease.h"
#include "spot_engine.h"

#define CREATE_TRACE_POINTS
#include "spot_trace.h"

/* Entries between two looks at the clock, against the budget in time */
#define SPOT_PASS_CHUNK		64U

static_assert((CONFIG_NR_CPUS - 1) <= SPOT_CORE_CPU);

unsigned int spot_tick_ns = NSEC_PER_MSEC;
EXPORT_SYMBOL_GPL(spot_tick_ns);
module_param_named(tick_ns, spot_tick_ns, uint, 0444);
MODULE_PARM_DESC(tick_ns, "length of a wheel tick, 100000 to 1000000000 ns (default 1000000)");

static int spot_param_set_range(const char *val, const struct kernel_param *kp,
				unsigned int low, unsigned int high)
{
	unsigned int n;
	int ret = kstrtouint(val, 0, &n);

	if (ret)
		return ret;
	if (n < low || n > high)
		return -EINVAL;
	WRITE_ONCE(*(unsigned int *)kp->arg, n);
	return 0;
}

static int spot_param_set_budget(const char *val, const struct kernel_param *kp)
{
	return spot_param_set_range(val, kp, 1, 1000000);
}

static int spot_param_set_budget_ns(const char *val,
				    const struct kernel_param *kp)
{
	return spot_param_set_range(val, kp, 10000, NSEC_PER_SEC / 10);
}

static const struct kernel_param_ops spot_budget_ops = {
	.set = spot_param_set_budget,
	.get = param_get_uint,
};

static const struct kernel_param_ops spot_budget_ns_ops = {
	.set = spot_param_set_budget_ns,
	.get = param_get_uint,
};

static unsigned int spot_budget = 1024;
module_param_cb(budget, &spot_budget_ops, &spot_budget, 0644);
MODULE_PARM_DESC(budget, "timers moved or expired in one softirq pass, 1 to 1000000 (default 1024)");

static unsigned int spot_budget_ns = NSEC_PER_MSEC;
module_param_cb(budget_ns, &spot_budget_ns_ops, &spot_budget_ns, 0644);
MODULE_PARM_DESC(budget_ns, "time spent in one softirq pass, 10000 to 100000000 ns (default 1000000)");

static const char * const spot_stat_name[SPOT_NR_STATS] = {
	[SPOT_STAT_HRTIMERS]		= "hrtimers",
	[SPOT_STAT_STARTED]		= "started",
	[SPOT_STAT_CANDIDATES]		= "candidates",
	[SPOT_STAT_READY]		= "ready",
	[SPOT_STAT_READY_AGAIN]		= "ready_again",
	[SPOT_STAT_HANDLERS]		= "handlers",
	[SPOT_STAT_HANDLER_NS]		= "handler_ns",
	[SPOT_STAT_LATE_NS]		= "late_ns",
	[SPOT_STAT_CASCADED]		= "cascaded",
	[SPOT_STAT_EXHAUSTED]		= "exhausted",
	[SPOT_STAT_MERGED]		= "merged",
	[SPOT_STAT_SKIPPED]		= "skipped",
	[SPOT_STAT_REFUSED]		= "refused",
	[SPOT_STAT_REFUSED_READ]	= "refused_read",
	[SPOT_STAT_BUSY]		= "busy",
	[SPOT_STAT_MIGRATED]		= "migrated",
	[SPOT_STAT_CANCELLED]		= "cancelled",
	[SPOT_STAT_CALLED]		= "called",
	[SPOT_STAT_PASSES]		= "passes",
	[SPOT_STAT_SPURIOUS]		= "spurious",
	[SPOT_STAT_PASS_MAX]		= "pass_max",
	[SPOT_STAT_PASS_MAX_NS]		= "pass_max_ns",
};

DEFINE_PER_CPU(u64[SPOT_NR_STATS], spot_stats);

/* Allocated when a CPU first comes up, freed with the module. */
DEFINE_PER_CPU(struct spot_cpu *, spot_cpus);
struct spot_tick_len spot_tick_len;
static int spot_cpuhp_state;

/*
 * Counters
 */

/*
 * A tick has expired on @cpu, which is locked. What is in the last bucket was past
 * when it was registered, or a clock was set: in a sum it would hide all else.
 */
static void spot_count_late(struct spot_cpu *cpu, u64 late)
{
	unsigned int i = fls64(late >> SPOT_LATE_SHIFT);

	if (i < SPOT_NR_LATE - 1)
		spot_count_add(SPOT_STAT_LATE_NS, late);
	cpu->late[min(i, SPOT_NR_LATE - 1U)]++;
}

/*
 * Time
 */

static const clockid_t spot_clock_id[SPOT_NR_CLOCKS] = {
	[SPOT_MONOTONIC]	= CLOCK_MONOTONIC,
	[SPOT_BOOTTIME]		= CLOCK_BOOTTIME,
	[SPOT_REALTIME]		= CLOCK_REALTIME,
};

/**
 * spot_clock_now - what time it is
 * @clock: on which clock
 *
 * Any context.
 *
 * Return: nanoseconds.
 */
s64 spot_clock_now(enum spot_clock clock)
{
	KUNIT_STATIC_STUB_REDIRECT(spot_clock_now, clock);

	switch (clock) {
	case SPOT_BOOTTIME:
		return ktime_get_boottime();
	case SPOT_REALTIME:
		return ktime_get_real();
	default:
		return ktime_get();
	}
}
EXPORT_SYMBOL_GPL(spot_clock_now);

/**
 * spot_base_arm - arm the hrtimer of a base, or disarm it
 * @base: the base
 * @time: when it is to fire, nanoseconds on its clock; KTIME_MAX for never
 */
void spot_base_arm(struct spot_base *base, s64 time)
{
	KUNIT_STATIC_STUB_REDIRECT(spot_base_arm, base, time);

	if (time == KTIME_MAX)
		/* if it is just firing, the pass finds nothing and goes */
		hrtimer_try_to_cancel(&base->hrtimer);
	else
		hrtimer_start(&base->hrtimer, time,
			      HRTIMER_MODE_ABS_PINNED_SOFT);
}

/*
 * The time on the clock of a base, whose CPU is locked. A wheel that is ahead of
 * it says that the clock was set back.
 */
static s64 spot_base_now(struct spot_base *base)
{
	s64 now = spot_clock_now(base->clock);
	unsigned int i;

	if (base->clock == SPOT_REALTIME)
		for (i = 0; i < SPOT_NR_WHEELS; i++)
			spot_wheel_rewind(&base->wheel[i],
					  spot_tick_floor(&spot_tick_len, now));
	return now;
}

/*
 * Arm the hrtimer for the next bucket that holds something. If it is armed for
 * an earlier time, let it be: it will find out. But it is not left to fire for
 * nothing at all.
 *
 * On other clocks than the monotonic one, what has to wait although it is due
 * waits in spot_cpu.soon; so does what is due at the next wheel tick, if the
 * clock may be set back before. Where nothing may be armed it stays on its clock's
 * own hrtimer, if that is what it has: nobody would come for spot_cpu.soon.
 */
static void spot_base_program(struct spot_base *base, bool may_arm)
{
	bool mono = base->clock == SPOT_MONOTONIC;
	struct spot_cpu *cpu = base->cpu;
	s64 event = mono ? cpu->soon : KTIME_MAX;
	s64 now = S64_MIN, near = S64_MIN;
	unsigned int i;
	u64 tick;

	if (base->clock == SPOT_REALTIME || (!mono && cpu->hold)) {
		now = spot_base_now(base);
		near = now;
	}
	if (base->clock == SPOT_REALTIME)
		near += spot_tick_len.ns;

	for (i = 0; i < SPOT_NR_WHEELS; i++) {
		s64 hold = i == SPOT_WHEEL_NORMAL ? cpu->hold : 0;
		s64 time;

		if (!spot_wheel_next(&base->wheel[i], &tick))
			continue;
		time = spot_tick_time(tick);
		if (mono)
			event = min(event, max(time, hold));
		else if (time > near || !may_arm)
			event = min(event, time);
		else
			cpu->soon = min(cpu->soon,
					max(spot_clock_now(SPOT_MONOTONIC) +
					    max_t(s64, time - now, 0), hold));
	}

	if ((event < base->armed && may_arm) ||
	    (event == KTIME_MAX && base->armed != KTIME_MAX)) {
		base->armed = event;
		spot_base_arm(base, event);
	}
}

/* Arm the hrtimers of the clocks that are set in @clocks, or disarm them. */
static void spot_cpu_program(struct spot_cpu *cpu, unsigned int clocks,
			     bool may_arm)
{
	unsigned int clock;

	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
		if (clock != SPOT_MONOTONIC && clocks & BIT(clock))
			spot_base_program(&cpu->base[clock], may_arm);
	spot_base_program(&cpu->base[SPOT_MONOTONIC], may_arm);
}

/*
 * The same after a change by a user. Another CPU's hrtimers would come here if
 * they were armed from here, and need not: nothing is added to its wheels.
 */
static void spot_cpu_changed(struct spot_cpu *cpu, unsigned int clocks)
{
	/* a pass does it at its end */
	if (!cpu->passing)
		spot_cpu_program(cpu, clocks, cpu == this_cpu_read(spot_cpus));
}

/*
 * Timers and their locks
 */

/**
 * spot_core_init - prepare a core that calls a function
 * @core: the core
 * @clock: its clock
 * @critical: expire it ahead of others (contract A9)
 * @expire: the function: called in softirq in a pass, without a lock; the core
 *	is RUNNING and taken, and what becomes of it is the function's to say
 */
void spot_core_init(struct spot_core *core, enum spot_clock clock,
		    bool critical, void (*expire)(struct spot_core *core))
{
	INIT_LIST_HEAD(&core->entry.link);
	core->entry.deadline = 0;
	core->entry.slack = 0;
	core->entry.user = (critical ? SPOT_CORE_CRITICAL : 0) |
			   FIELD_PREP(SPOT_CORE_CLOCK, clock) |
			   FIELD_PREP(SPOT_CORE_CPU, raw_smp_processor_id());
	core->lease = NULL;
	core->expire = expire;
}

/* Two CPUs, which are not the same, in an order that is the same for all. */
static void spot_cpu_lock_both(struct spot_cpu *a, struct spot_cpu *b)
{
	spot_cpu_lock(min(a, b));
	spin_lock_nested(&max(a, b)->lock, SINGLE_DEPTH_NESTING);
	__release(&max(a, b)->lock);
}

/*
 * Queues
 */

/**
 * spot_queue_init - make an empty queue
 * @queue: the queue
 * @notify: see struct spot_queue
 */
void spot_queue_init(struct spot_queue *queue,
		     void (*notify)(struct spot_queue *queue))
{
	spin_lock_init(&queue->lock);
	INIT_LIST_HEAD(&queue->ready);
	INIT_LIST_HEAD(&queue->critical);
	queue->streak = 0;
	queue->notify = notify;
}
EXPORT_SYMBOL_GPL(spot_queue_init);

static struct list_head *spot_queue_list(struct spot_queue *queue,
					 const struct spot_core *core)
{
	lockdep_assert_held(&queue->lock);

	return core->entry.user & SPOT_CORE_CRITICAL ? &queue->critical :
							 &queue->ready;
}

/**
 * spot_queue_pop - take the next cores off a queue
 * @queue: the queue, locked by the caller
 * @cores: where to put them
 * @n: how many at the most
 * @streak: critical timers taken in a row, at first queue->streak; updated
 *
 * Critical ones come first and one by one, but not for ever while others wait:
 * then one of those comes in between. The timers stay READY, for spot_batch_take(),
 * spot_batch_hold() or spot_queue_unpop().
 *
 * Return: how many were taken; 0 if there are none.
 */
unsigned int spot_queue_pop(struct spot_queue *queue, struct spot_core **cores,
			    unsigned int n, unsigned int *streak)
{
	struct list_head *list = &queue->ready;
	struct list_head *at;
	unsigned int i = 0;

	lockdep_assert_held(&queue->lock);

	if (!list_empty(&queue->critical))
		n = 1;
	if (!list_empty(&queue->critical) &&
	    (list_empty(list) || *streak < SPOT_CRITICAL_STREAK)) {
		list = &queue->critical;
		(*streak)++;
	} else {
		*streak = 0;
	}
	for (at = list->next; i < n && at != list; i++) {
		cores[i] = list_entry(at, struct spot_core, entry.link);
		at = at->next;
		INIT_LIST_HEAD(&cores[i]->entry.link);
	}
	list->next = at;
	at->prev = list;
	return i;
}
EXPORT_SYMBOL_GPL(spot_queue_pop);

/**
 * spot_queue_unpop - put a core back where it was taken from
 * @queue: the queue, locked by the caller
 * @core: the last one that was popped and not put back yet
 */
void spot_queue_unpop(struct spot_queue *queue, struct spot_core *core)
{
	list_add(&core->entry.link, spot_queue_list(queue, core));
}
EXPORT_SYMBOL_GPL(spot_queue_unpop);

/*
 * Batches: what a user does to its timers
 */

/**
 * spot_batch_begin - begin a batch
 * @batch: to be filled in
 *
 * Context: any in which bottom halves may be disabled; disables them.
 */
void spot_batch_begin(struct spot_batch *batch)
{
	spot_batch_open(batch);
}
EXPORT_SYMBOL_GPL(spot_batch_begin);

/**
 * spot_batch_unlock - let go of the lock that a batch may hold
 * @batch: the batch, which goes on
 */
void spot_batch_unlock(struct spot_batch *batch)
{
	struct spot_cpu *cpu = batch->locked;

	if (!cpu)
		return;
	if (batch->dirty)
		spot_cpu_changed(cpu, batch->dirty);
	spot_cpu_unlock(cpu);
	batch->locked = NULL;
}
EXPORT_SYMBOL_GPL(spot_batch_unlock);

static void spot_batch_notify(struct spot_batch *batch)
{
	spot_batch_unlock(batch);
	if (batch->queue) {
		rcu_read_lock();
		batch->queue->notify(batch->queue);
		rcu_read_unlock();
		batch->queue = NULL;
	}
}

/**
 * spot_batch_end - end a batch
 * @batch: the batch
 */
void spot_batch_end(struct spot_batch *batch)
{
	spot_batch_notify(batch);
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(spot_batch_end);

/* The same as spot_batch_lock_core(), for a core that is not on batch->locked. */
struct spot_cpu *spot_batch_lock_other(struct spot_batch *batch,
				       struct spot_core *core)
{
	struct spot_cpu *cpu;

	do {
		cpu = spot_core_cpu(core);
		spot_batch_lock(batch, cpu);
	} while (spot_core_cpu(core) != cpu);
	return cpu;
}

/* The same as spot_cpu_remove(), for a core that is not pending. */
enum spot_state spot_core_remove(struct spot_core *core)
{
	enum spot_state state = spot_core_state(core);
	bool queued = core->entry.user & SPOT_CORE_QUEUED;

	if (state == SPOT_RUNNING && !queued) {
		/* it has been counted as called */
		spot_core_set_state(core, SPOT_IDLE);
		trace_spottimer_stop(core, state);
	}
	if (state == SPOT_IDLE || state == SPOT_RUNNING)
		return state;
	if (state == SPOT_READY && queued) {
		spin_lock(&core->queue->lock);
		spot_entry_unlink(&core->entry);
		spin_unlock(&core->queue->lock);
	}
	spot_core_stopped(core, state);
	return state;
}

/*
 * The same as spot_batch_move(), where that is not simple: @core belongs to another
 * CPU than this one, @here, or has just been moved by somebody else.
 */
enum spot_state spot_batch_fetch(struct spot_batch *batch,
				 struct spot_cpu *here,
				 struct spot_core *core, bool remove)
{
	enum spot_state state;
	struct spot_cpu *cpu;
	u8 dirty = 0;

	for (;;) {
		cpu = spot_core_cpu(core);
		if (cpu == here) {
			if (spot_batch_lock_core(batch, core) != here)
				continue;
			return remove ? spot_cpu_remove(here, core,
							&batch->dirty) :
					spot_core_state(core);
		}
		spot_batch_unlock(batch);
		spot_cpu_lock_both(cpu, here);
		if (spot_core_cpu(core) == cpu)
			break;
		spot_cpu_unlock(cpu);
		spot_cpu_unlock(here);
	}
	state = remove ? spot_cpu_remove(cpu, core, &dirty) :
			 spot_core_state(core);
	if (dirty)
		spot_cpu_changed(cpu, dirty);
	if (cpu->running == core || (!remove && state == SPOT_PENDING)) {
		spot_cpu_unlock(here);
		spot_batch_locked(batch, cpu);
	} else {
		spot_core_set(core, SPOT_CORE_CPU, here->nr);
		spot_cpu_unlock(cpu);
		spot_batch_locked(batch, here);
	}
	return state;
}

/* Of @wheel of @base so many have cascaded since there were @before. */
static void spot_count_cascade(struct spot_base *base,
			       const struct spot_wheel *wheel, u64 before)
{
	u64 moved = wheel->cascaded - before;

	if (!moved)
		return;
	spot_count_add(SPOT_STAT_CASCADED, moved);
	trace_spottimer_cascade(base->cpu->nr, base->clock,
				wheel == &base->wheel[SPOT_WHEEL_CRITICAL],
				moved, wheel->processed);
}

/* Bring the wheels of @base up to the time that the batch goes by. */
static void spot_batch_forward(struct spot_batch *batch, struct spot_base *base)
{
	unsigned int i;
	u64 tick;

	/*
	 * A clock that may be set has to be read with the lock held. In a pass,
	 * which goes on by its own time, it is not to be noticed.
	 */
	tick = spot_tick_floor(&spot_tick_len, base->clock == SPOT_REALTIME &&
			       !base->cpu->passing ?
			       spot_base_now(base) :
			       spot_batch_now(batch, base->clock));
	for (i = 0; i < SPOT_NR_WHEELS; i++)
		spot_wheel_forward(&base->wheel[i], tick);
	batch->forwarded |= BIT(base->clock);
}

/*
 * @core has been added to @wheel, to be looked at @tick, in a way that is not the
 * usual one: a clock has to be read, the hrtimer may have to fire sooner, or there
 * were cascades, with @cascaded before.
 */
void spot_batch_added(struct spot_batch *batch, struct spot_base *base,
		      struct spot_wheel *wheel, struct spot_core *core,
		      u64 tick, u64 cascaded)
{
	bool may_be_set = base->clock == SPOT_REALTIME;

	if (!(batch->forwarded & BIT(base->clock)) &&
	    (may_be_set || spot_tick_time(tick) < base->armed)) {
		spot_wheel_remove(wheel, &core->entry);
		spot_batch_forward(batch, base);
		tick = spot_wheel_add(wheel, &core->entry);
	}
	spot_count_cascade(base, wheel, cascaded);
	/* another CPU's is programmed by the pass that runs there */
	if ((spot_tick_time(tick) < base->armed ||
	     (may_be_set && tick <= wheel->processed + 1)) &&
	    base->cpu == this_cpu_read(spot_cpus))
		batch->dirty |= BIT(base->clock);
}

/* Put @core, which is in no wheel and on no queue, into one. */
static void spot_batch_arm(struct spot_batch *batch, struct spot_core *core)
{
	spot_batch_bring(batch, core);
	spot_batch_add(batch, core);
}

/* Put @core on its queue. */
static void spot_batch_ready(struct spot_batch *batch, struct spot_core *core)
{
	struct spot_queue *queue = core->queue;

	if (batch->queue && batch->queue != queue)
		spot_batch_notify(batch);
	batch->queue = queue;

	spot_core_set_state(core, SPOT_READY);
	spin_lock(&queue->lock);
	spot_entry_link(&core->entry, spot_queue_list(queue, core));
	spin_unlock(&queue->lock);
}

/**
 * spot_batch_push - put a core on its queue, due or not
 * @batch: the batch
 * @core: a queued core that is idle, and stays so
 *
 * For what the queue's user wants to tell itself in the order of its ticks.
 */
void spot_batch_push(struct spot_batch *batch, struct spot_core *core)
{
	spot_batch_ready(batch, core);
	spot_core_set_state(core, SPOT_IDLE);
}
EXPORT_SYMBOL_GPL(spot_batch_push);

/**
 * spot_batch_start - start a queued core
 * @batch: the batch
 * @core: the core, idle; entry.deadline, entry.slack and overrun are set
 *
 * It fires at the first wheel tick at or after its deadline, and not before
 * the next (contract A3).
 */
void spot_batch_start(struct spot_batch *batch, struct spot_core *core)
{
	/* nobody else is at it, so it may belong to this CPU from now on */
	spot_batch_here(batch);
	spot_batch_add_started(batch, core);
}
EXPORT_SYMBOL_GPL(spot_batch_start);

/**
 * spot_batch_state - where a core is, and stays while the batch has its lock
 * @batch: the batch
 * @core: the core
 *
 * Unlike spot_core_state() it waits for a pass that is just expiring the core.
 *
 * Return: the state.
 */
enum spot_state spot_batch_state(struct spot_batch *batch,
				 struct spot_core *core)
{
	spot_batch_lock_core(batch, core);
	return spot_core_state(core);
}
EXPORT_SYMBOL_GPL(spot_batch_state);

/**
 * spot_batch_cancel - take a core out of the wheel or off its queue
 * @batch: the batch
 * @core: the core
 *
 * One with a queue that is RUNNING stays so: its user waits or not.
 *
 * Return: where the core was. It is IDLE, or still SPOT_RUNNING.
 */
enum spot_state spot_batch_cancel(struct spot_batch *batch,
				  struct spot_core *core)
{
	struct spot_cpu *cpu = spot_batch_lock_core(batch, core);

	return spot_cpu_remove(cpu, core, &batch->dirty);
}
EXPORT_SYMBOL_GPL(spot_batch_cancel);

/**
 * spot_batch_take - begin the handler of a queued core
 * @batch: the batch
 * @core: a core that was popped from its queue
 * @tick: where to put which tick it is
 */
void spot_batch_take(struct spot_batch *batch, struct spot_core *core,
		     struct spot_tick *tick)
{
	spot_core_take(batch, core, tick);
}
EXPORT_SYMBOL_GPL(spot_batch_take);

/* Let @core wait for its next tick, or none if that has been processed. */
static void spot_batch_next(struct spot_batch *batch, struct spot_core *core)
{
	s64 now = spot_batch_now(batch, spot_core_clock(core));

	if (spot_tick_ceil(&spot_tick_len, core->entry.deadline) <=
	    spot_tick_floor(&spot_tick_len, now)) {
		spot_count(SPOT_STAT_READY_AGAIN);
		trace_spottimer_ready(core, now);
		spot_batch_ready(batch, core);
	} else {
		spot_batch_arm(batch, core);
	}
}

/**
 * spot_batch_complete - end the handler of a queued core
 * @batch: the batch
 * @core: a core that is running
 * @go_on: whether there is to be a next tick
 *
 * If the next tick has come meanwhile, the core is ready at once (contract
 * F5); otherwise it waits for it.
 *
 * Return: false if there is no next tick; the core is idle then.
 */
bool spot_batch_complete(struct spot_batch *batch, struct spot_core *core,
			 bool go_on)
{
	if (!go_on || !core->overrun.period) {
		spot_core_set_state(core, SPOT_IDLE);
		return false;
	}
	spot_overrun_complete(&core->overrun, &core->entry.deadline,
			      spot_batch_now(batch, spot_core_clock(core)));
	spot_batch_next(batch, core);
	return true;
}
EXPORT_SYMBOL_GPL(spot_batch_complete);

/**
 * spot_batch_hold - keep a tick that may not start
 * @batch: the batch
 * @core: a core that was popped from its queue, or is held
 *
 * Either its lease has ended or, if it has none or one that is live, its user
 * has a reason of its own.
 */
void spot_batch_hold(struct spot_batch *batch, struct spot_core *core)
{
	bool lease = core->lease &&
		     !spot_lease_admit(core->lease,
				       spot_batch_now(batch, SPOT_BOOTTIME));

	spot_core_set_state(core, SPOT_HELD);
	if (lease)
		spot_count(SPOT_STAT_REFUSED_READ);
	trace_spottimer_hold(core, spot_batch_now(batch, spot_core_clock(core)),
			     lease);
}
EXPORT_SYMBOL_GPL(spot_batch_hold);

/**
 * spot_batch_resume - let a held core go on
 * @batch: the batch
 * @core: a core that is held, or was popped from its queue
 */
void spot_batch_resume(struct spot_batch *batch, struct spot_core *core)
{
	spot_batch_next(batch, core);
}
EXPORT_SYMBOL_GPL(spot_batch_resume);

/**
 * spot_call_begin - the function of a timer is about to be called
 * @core: its core
 * @fn: the function
 * @tick: which tick it is
 *
 * Return: the time, for spot_call_end().
 */
s64 spot_call_begin(const struct spot_core *core, spot_timer_fn fn,
		    const struct spot_tick *tick)
{
	spot_count(SPOT_STAT_HANDLERS);
	trace_spottimer_call(core, fn, tick);
	return spot_clock_now(SPOT_MONOTONIC);
}

/**
 * spot_call_end - the function of a timer has returned
 * @core: its core, which may be gone
 * @tick: which tick it was
 * @verdict: what the function said
 * @begin: what spot_call_begin() said
 */
void spot_call_end(const struct spot_core *core, const struct spot_tick *tick,
		   enum spot_verdict verdict, s64 begin)
{
	u64 ns = spot_clock_now(SPOT_MONOTONIC) - begin;

	spot_count_add(SPOT_STAT_HANDLER_NS, ns);
	if (verdict == SPOT_BUSY)
		spot_count(SPOT_STAT_BUSY);
	else
		spot_count_tick(tick);
	trace_spottimer_return(core, tick, verdict, ns);
}

/**
 * spot_batch_expiring - whether a pass has just taken a core out of its wheel
 * @batch: the batch
 * @core: a core that is not queued
 * @by_me: whether the caller runs within that pass
 *
 * If so its function is about to be called, or runs, or has just returned.
 *
 * Return: the CPU of the pass, or NULL.
 */
struct spot_cpu *spot_batch_expiring(struct spot_batch *batch,
				     struct spot_core *core, bool *by_me)
{
	struct spot_cpu *cpu = spot_batch_lock_core(batch, core);

	if (cpu->running != core)
		return NULL;
	*by_me = READ_ONCE(cpu->expiring) == current;
	return cpu;
}

/**
 * spot_cpu_wait - wait for the end of a pass
 * @cpu: the CPU
 *
 * Context: any in which bottom halves may be disabled, but not within a pass.
 */
void spot_cpu_wait(struct spot_cpu *cpu)
{
	spin_lock_bh(&cpu->expiry_lock);
	spin_unlock_bh(&cpu->expiry_lock);
}

/*
 * Expiry
 */

/**
 * struct spot_pass - one pass over a base
 * @base: the base
 * @now: the time, on its clock
 * @boottime: the time for leases, 0 until one has asked
 * @queue: a queue that is locked and was added to, or NULL
 * @entries: timers moved or expired so far
 */
struct spot_pass {
	struct spot_base *base;
	s64 now;
	s64 boottime;
	struct spot_queue *queue;
	u64 entries;
};

static void spot_pass_notify(struct spot_pass *pass)
{
	struct spot_queue *queue = pass->queue;

	if (!queue)
		return;
	__acquire(&queue->lock);
	spin_unlock(&queue->lock);
	queue->notify(queue);
	pass->queue = NULL;
}

static void spot_pass_queue(struct spot_pass *pass, struct spot_core *core)
{
	struct spot_queue *queue = core->queue;

	if (pass->queue != queue) {
		spot_pass_notify(pass);
		spin_lock(&queue->lock);
		__release(&queue->lock);
		pass->queue = queue;
	}
	spot_core_set_state(core, SPOT_READY);
	spot_entry_link(&core->entry, spot_queue_list(queue, core));
	spot_count(SPOT_STAT_READY);
	trace_spottimer_ready(core, pass->now);
}

static void spot_pass_call(struct spot_pass *pass, struct spot_core *core)
{
	struct spot_cpu *cpu = pass->base->cpu;

	spot_core_set_state(core, SPOT_RUNNING);
	cpu->running = core;
	spot_count(SPOT_STAT_CALLED);
	spot_pass_notify(pass);
	spin_unlock(&cpu->lock);

	/* it may be freed there */
	core->expire(core);

	spin_lock(&cpu->lock);
	cpu->running = NULL;
	pass->boottime = 0;
}

static bool spot_pass_admit(struct spot_pass *pass, struct spot_core *core)
{
	if (!core->lease)
		return true;
	if (!pass->boottime)
		pass->boottime = spot_clock_now(SPOT_BOOTTIME);
	return spot_lease_admit(core->lease, pass->boottime);
}

/* @core has been taken out of the wheel because its wheel tick has come. */
static void spot_pass_expire(struct spot_pass *pass, struct spot_core *core)
{
	struct spot_cpu *cpu = pass->base->cpu;
	s64 late = pass->now - core->entry.deadline;

	spot_count(SPOT_STAT_CANDIDATES);
	trace_spottimer_expire(core, pass->now);
	if (unlikely(late < 0)) {
		spot_wheel_add(spot_flags_wheel(pass->base, core->entry.user),
			       &core->entry);
		return;
	}

	spot_count_late(cpu, late);
	if (!spot_pass_admit(pass, core)) {
		spot_core_set_state(core, SPOT_HELD);
		spot_count(SPOT_STAT_REFUSED);
		trace_spottimer_hold(core, pass->now, true);
	} else if (core->entry.user & SPOT_CORE_QUEUED) {
		spot_pass_queue(pass, core);
	} else {
		spot_pass_call(pass, core);
	}
}

/* Spend up to @budget on a wheel. True if there is more to do. */
static bool spot_pass_wheel(struct spot_pass *pass, struct spot_wheel *wheel,
			    unsigned int budget)
{
	u64 tick = spot_tick_floor(&spot_tick_len, pass->now);
	u64 cascaded = wheel->cascaded;
	struct spot_wheel_entry *entry;
	unsigned int left = budget;

	pass->boottime = 0;
	while ((entry = spot_wheel_expire(wheel, tick, &left)))
		spot_pass_expire(pass, container_of(entry, struct spot_core,
						    entry));
	spot_count_cascade(pass->base, wheel, cascaded);
	pass->entries += budget - left;
	return !left;
}

/* Whether timers of @base that are not critical are due. */
static bool spot_base_overdue(struct spot_base *base)
{
	s64 now = spot_base_now(base);
	u64 tick;

	return spot_wheel_next(&base->wheel[SPOT_WHEEL_NORMAL], &tick) &&
	       spot_tick_time(tick) <= now;
}

/* Turn to @base. False if a pass has nothing to do in that wheel of it. */
static bool spot_pass_turn(struct spot_pass *pass, struct spot_base *base,
			   unsigned int which)
{
	u64 tick;

	if (!spot_wheel_next(&base->wheel[which], &tick))
		return false;
	pass->base = base;
	pass->now = spot_base_now(base);
	return true;
}

static void spot_pass_critical(struct spot_pass *pass, struct spot_cpu *cpu)
{
	unsigned int clock;

	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++) {
		struct spot_base *base = &cpu->base[clock];

		if (spot_pass_turn(pass, base, SPOT_WHEEL_CRITICAL))
			while (spot_pass_wheel(pass, &base->wheel[SPOT_WHEEL_CRITICAL],
					       SPOT_PASS_CHUNK))
				;
	}
}

/*
 * Expire timers that are not critical until the budget is used up. Then another
 * clock comes first in the next pass, or one with too much to do would starve
 * the others.
 *
 * Return: whether there is more to do.
 */
static bool spot_pass_normal(struct spot_pass *pass, struct spot_cpu *cpu,
			     s64 end)
{
	u64 last = pass->entries + READ_ONCE(spot_budget);
	unsigned int first = cpu->turn;
	unsigned int i;

	for (i = 0; i < SPOT_NR_CLOCKS; i++) {
		unsigned int clock = (first + i) % SPOT_NR_CLOCKS;
		struct spot_base *base = &cpu->base[clock];
		struct spot_wheel *wheel = &base->wheel[SPOT_WHEEL_NORMAL];
		bool more, out;

		if (!spot_pass_turn(pass, base, SPOT_WHEEL_NORMAL))
			continue;
		do {
			more = spot_pass_wheel(pass, wheel,
					       min_t(u64, last - pass->entries,
						     SPOT_PASS_CHUNK));
			out = pass->entries == last ||
			      spot_clock_now(SPOT_MONOTONIC) >= end;
		} while (more && !out);

		if (more && spot_base_overdue(base)) {
			cpu->turn = (clock + 1) % SPOT_NR_CLOCKS;
			return true;
		}
	}
	return false;
}

/**
 * spot_base_pass - expire what is due on the CPU of a base, within the budget
 * @base: the base, whose hrtimer has fired
 *
 * Context: softirq.
 */
void spot_base_pass(struct spot_base *base)
{
	struct spot_cpu *cpu = base->cpu;
	struct spot_pass pass = {};
	bool held, more;
	s64 begin, spent;

	spin_lock(&cpu->expiry_lock);
	WRITE_ONCE(cpu->expiring, current);
	rcu_read_lock();
	spin_lock(&cpu->lock);

	begin = spot_clock_now(SPOT_MONOTONIC);
	base->armed = KTIME_MAX;
	cpu->passing = true;
	cpu->soon = KTIME_MAX;

	spot_pass_critical(&pass, cpu);
	/* a critical timer may have come while the others have to wait */
	held = begin < cpu->hold;
	more = !held && spot_pass_normal(&pass, cpu,
					 begin + READ_ONCE(spot_budget_ns));
	spot_pass_notify(&pass);

	spent = spot_clock_now(SPOT_MONOTONIC) - begin;
	if (more) {
		cpu->hold = begin + spent + max_t(s64, spent, SPOT_TICK_NS_MIN);
		spot_count(SPOT_STAT_EXHAUSTED);
	} else if (!held) {
		cpu->hold = 0;
	}
	spot_count(SPOT_STAT_PASSES);
	if (!pass.entries)
		spot_count(SPOT_STAT_SPURIOUS);
	cpu->pass_max = max(cpu->pass_max, pass.entries);
	cpu->pass_max_ns = max_t(u64, cpu->pass_max_ns, spent);

	cpu->passing = false;
	spot_cpu_program(cpu, BIT(SPOT_NR_CLOCKS) - 1, true);

	spin_unlock(&cpu->lock);
	rcu_read_unlock();
	WRITE_ONCE(cpu->expiring, NULL);
	spin_unlock(&cpu->expiry_lock);
}

static enum hrtimer_restart spot_base_fire(struct hrtimer *hrtimer)
{
	spot_base_pass(container_of(hrtimer, struct spot_base, hrtimer));
	return HRTIMER_NORESTART;
}

/*
 * CPU hotplug
 */

static int spot_cpu_prepare(unsigned int n)
{
	struct spot_cpu *cpu = per_cpu(spot_cpus, n);
	unsigned int clock, i;

	/* one that comes back finds its wheels empty; they forward themselves */
	if (cpu)
		return 0;

	cpu = kvzalloc_node(sizeof(*cpu), GFP_KERNEL, cpu_to_node(n));
	if (!cpu)
		return -ENOMEM;
	spin_lock_init(&cpu->lock);
	spin_lock_init(&cpu->expiry_lock);
	cpu->soon = KTIME_MAX;
	cpu->nr = n;
	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++) {
		struct spot_base *base = &cpu->base[clock];

		base->cpu = cpu;
		base->clock = clock;
		base->armed = KTIME_MAX;
		hrtimer_setup(&base->hrtimer, spot_base_fire,
			      spot_clock_id[clock],
			      HRTIMER_MODE_ABS_PINNED_SOFT);
		for (i = 0; i < SPOT_NR_WHEELS; i++)
			spot_wheel_init(&base->wheel[i], &spot_tick_len,
					spot_tick_floor(&spot_tick_len,
							spot_clock_now(clock)));
	}
	/* others may look at its counters from now on */
	smp_store_release(per_cpu_ptr(&spot_cpus, n), cpu);
	return 0;
}

/* Move timers of a wheel of the dead CPU @from here. True if there are more. */
static bool spot_cpu_drain(struct spot_cpu *from, enum spot_clock clock,
			   unsigned int which)
{
	struct spot_wheel *wheel = &from->base[clock].wheel[which];
	struct spot_wheel_entry *entry;
	struct spot_batch batch;
	struct spot_cpu *here;
	unsigned int n;

	/* so too when a load fails half-way, and nothing has died */
	if (!spot_wheel_first(wheel))
		return false;

	spot_batch_begin(&batch);
	/* no pass is at a core that moves, and none keeps some for its end */
	spin_lock(&from->expiry_lock);
	here = this_cpu_read(spot_cpus);
	spot_cpu_lock_both(from, here);
	spot_batch_locked(&batch, here);

	for (n = 0; n < SPOT_PASS_CHUNK; n++) {
		struct spot_core *core;

		entry = spot_wheel_first(wheel);
		if (!entry)
			break;
		core = container_of(entry, struct spot_core, entry);
		spot_wheel_remove(wheel, entry);
		trace_spottimer_migrate(core, smp_processor_id());
		spot_batch_add(&batch, core);
		spot_count(SPOT_STAT_MIGRATED);
	}

	spot_cpu_unlock(from);
	spot_batch_unlock(&batch);
	spin_unlock(&from->expiry_lock);
	spot_batch_end(&batch);
	return entry;
}

/* Leave @cpu as it has to be when it comes back. False if it has timers. */
static bool spot_cpu_bury(struct spot_cpu *cpu)
{
	bool empty = true;
	unsigned int clock, i;

	spin_lock_bh(&cpu->expiry_lock);
	spin_lock(&cpu->lock);
	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++) {
		for (i = 0; i < SPOT_NR_WHEELS; i++)
			if (spot_wheel_first(&cpu->base[clock].wheel[i]))
				empty = false;
		cpu->base[clock].armed = KTIME_MAX;
	}
	cpu->hold = 0;
	cpu->soon = KTIME_MAX;
	spin_unlock(&cpu->lock);
	spin_unlock_bh(&cpu->expiry_lock);
	return empty;
}

static int spot_cpu_dead(unsigned int n)
{
	struct spot_cpu *cpu = per_cpu(spot_cpus, n);
	unsigned int clock, i;

	/* a function that a pass calls may start its timer again, on any clock */
	do {
		for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
			hrtimer_cancel(&cpu->base[clock].hrtimer);
		for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
			for (i = 0; i < SPOT_NR_WHEELS; i++)
				while (spot_cpu_drain(cpu, clock, i))
					cond_resched();
	} while (!spot_cpu_bury(cpu));
	return 0;
}

/*
 * Tests with a clock of their own
 */

/**
 * spot_base_here - the base of this CPU
 * @clock: the clock
 *
 * Return: the base.
 */
struct spot_base *spot_base_here(enum spot_clock clock)
{
	return &this_cpu_read(spot_cpus)->base[clock];
}

/*
 * Start, stop, and what can be seen
 */

static u64 spot_cpu_hrtimers(struct spot_cpu *cpu)
{
	unsigned int clock, n = 0;

	for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
		n += hrtimer_active(&cpu->base[clock].hrtimer);
	return n;
}

/* A number of @cpu that its lock protects. */
static u64 spot_cpu_number(struct spot_cpu *cpu, const u64 *number)
{
	u64 value;

	spin_lock_bh(&cpu->lock);
	value = *number;
	spin_unlock_bh(&cpu->lock);
	return value;
}

/* CPU @n, or NULL if it has never been up. */
static struct spot_cpu *spot_cpu_if_known(unsigned int n)
{
	/* with what is in it, see spot_cpu_prepare() */
	return smp_load_acquire(per_cpu_ptr(&spot_cpus, n));
}

/* Counter @i of CPU @n. */
static u64 spot_get_stat(unsigned int n, unsigned int i)
{
	struct spot_cpu *cpu = spot_cpu_if_known(n);

	if (!cpu)
		return 0;
	switch (i) {
	case SPOT_STAT_HRTIMERS:
		return spot_cpu_hrtimers(cpu);
	case SPOT_STAT_PASS_MAX:
		return spot_cpu_number(cpu, &cpu->pass_max);
	case SPOT_STAT_PASS_MAX_NS:
		return spot_cpu_number(cpu, &cpu->pass_max_ns);
	default:
		return READ_ONCE(per_cpu(spot_stats, n)[i]);
	}
}

/* Bucket @i of the histogram of CPU @n. */
static u64 spot_get_late(unsigned int n, unsigned int i)
{
	struct spot_cpu *cpu = spot_cpu_if_known(n);

	return cpu ? spot_cpu_number(cpu, &cpu->late[i]) : 0;
}

static void spot_show_row(struct seq_file *m, const char *name,
			  u64 (*get)(unsigned int n, unsigned int i),
			  unsigned int i, bool is_max)
{
	u64 total = 0;
	unsigned int n;

	for_each_possible_cpu(n) {
		u64 value = get(n, i);

		total = is_max ? max(total, value) : total + value;
	}
	seq_printf(m, "%-12s %12llu", name, total);
	for_each_possible_cpu(n)
		seq_printf(m, " %12llu", get(n, i));
	seq_putc(m, '\n');
}

/**
 * spot_engine_show - print the counters
 * @m: where to
 *
 * A line for each: name, total (of a maximum the largest), then CPU by CPU.
 */
void spot_engine_show(struct seq_file *m)
{
	unsigned int i;

	for (i = 0; i < SPOT_NR_STATS; i++)
		spot_show_row(m, spot_stat_name[i], spot_get_stat, i,
			      i == SPOT_STAT_PASS_MAX ||
			      i == SPOT_STAT_PASS_MAX_NS);
}

static int spot_counters_show(struct seq_file *m, void *unused)
{
	spot_engine_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(spot_counters);

static int spot_cpu_counters_show(struct seq_file *m, void *unused)
{
	unsigned int n = (unsigned long)m->private;
	unsigned int i;

	for (i = 0; i < SPOT_NR_STATS; i++)
		seq_printf(m, "%-12s %12llu\n", spot_stat_name[i],
			   spot_get_stat(n, i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(spot_cpu_counters);

/* A line for each bucket: the least lateness of it, total, CPU by CPU. */
static int spot_lateness_show(struct seq_file *m, void *unused)
{
	unsigned int i;
	char name[24];

	for (i = 0; i < SPOT_NR_LATE; i++) {
		snprintf(name, sizeof(name), "%llu",
			 i ? BIT_ULL(SPOT_LATE_SHIFT + i - 1) : 0);
		spot_show_row(m, name, spot_get_late, i, false);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(spot_lateness);

/* Begin anew with the histogram and the maxima; counters are never reset. */
static int spot_reset_set(void *unused, u64 value)
{
	unsigned int n;

	if (value != 1)
		return -EINVAL;
	for_each_possible_cpu(n) {
		struct spot_cpu *cpu = spot_cpu_if_known(n);

		if (!cpu)
			continue;
		spin_lock_bh(&cpu->lock);
		memset(cpu->late, 0, sizeof(cpu->late));
		cpu->pass_max = 0;
		cpu->pass_max_ns = 0;
		spin_unlock_bh(&cpu->lock);
	}
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(spot_reset_fops, NULL, spot_reset_set, "%llu\n");

/**
 * spot_engine_debugfs - show what there is in debugfs
 * @dir: in this directory, which the caller removes
 */
void spot_engine_debugfs(struct dentry *dir)
{
	unsigned int n;
	char name[16];

	debugfs_create_file("counters", 0444, dir, NULL, &spot_counters_fops);
	debugfs_create_file("lateness", 0444, dir, NULL, &spot_lateness_fops);
	debugfs_create_file_unsafe("reset", 0200, dir, NULL, &spot_reset_fops);
	for_each_possible_cpu(n) {
		snprintf(name, sizeof(name), "cpu%u", n);
		debugfs_create_file("counters", 0444,
				    debugfs_create_dir(name, dir),
				    (void *)(unsigned long)n,
				    &spot_cpu_counters_fops);
	}
}

static void spot_engine_free(void)
{
	unsigned int n, clock;

	for_each_possible_cpu(n) {
		struct spot_cpu *cpu = per_cpu(spot_cpus, n);

		if (!cpu)
			continue;
		for (clock = 0; clock < SPOT_NR_CLOCKS; clock++)
			hrtimer_cancel(&cpu->base[clock].hrtimer);
		kvfree(cpu);
	}
}

/**
 * spot_engine_init - start the engine
 *
 * Return: 0, -EINVAL if tick_ns is out of range, or another error.
 */
int spot_engine_init(void)
{
	int ret;

	if (spot_tick_ns < SPOT_TICK_NS_MIN || spot_tick_ns > SPOT_TICK_NS_MAX) {
		pr_err("tick_ns=%u is out of range, must be %u to %u\n",
		       spot_tick_ns, SPOT_TICK_NS_MIN, SPOT_TICK_NS_MAX);
		return -EINVAL;
	}
	spot_tick_len_init(&spot_tick_len, spot_tick_ns);

	ret = cpuhp_setup_state(CPUHP_BP_PREPARE_DYN, "misc/spottimer:prepare",
				spot_cpu_prepare, spot_cpu_dead);
	if (ret < 0) {
		spot_engine_free();
		return ret;
	}
	spot_cpuhp_state = ret;
	return 0;
}

/**
 * spot_engine_exit - stop the engine
 *
 * No timer is pending any more.
 */
void spot_engine_exit(void)
{
	cpuhp_remove_state_nocalls(spot_cpuhp_state);
	spot_engine_free();
}
