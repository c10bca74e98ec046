/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the engine is for spottimer's own files only.
 */
#ifndef SPOT_ENGINE_H
#define SPOT_ENGINE_H

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/hrtimer.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/spinlock.h>

#include "spot_timer.h"
#include "spot_trace.h"
#include "spot_wheel.h"

struct dentry;
struct seq_file;

/* Range of the wheel tick, a load-time parameter (contract A2) */
#define SPOT_TICK_NS_MIN	100000U
#define SPOT_TICK_NS_MAX	1000000000U

/* Wheels of a base */
enum {
	SPOT_WHEEL_NORMAL,
	SPOT_WHEEL_CRITICAL,
	SPOT_NR_WHEELS
};

/**
 * struct spot_base - the timers of one CPU on one clock
 * @cpu: the CPU
 * @clock: the clock
 * @armed: when @hrtimer fires; KTIME_MAX if it is not armed
 * @hrtimer: fires when a wheel must be looked at
 * @wheel: the timers
 */
struct spot_base {
	struct spot_cpu *cpu;
	enum spot_clock clock;
	s64 armed;
	struct hrtimer hrtimer;
	struct spot_wheel wheel[SPOT_NR_WHEELS];
};

/*
 * What is counted, in the order in which trouble is traced. All but the ones
 * noted are counted on the CPU where it happens, without a lock.
 */
enum spot_stat {
	SPOT_STAT_HRTIMERS,	/* those that are armed now */
	SPOT_STAT_STARTED,
	SPOT_STAT_CANDIDATES,
	SPOT_STAT_READY,
	SPOT_STAT_READY_AGAIN,
	SPOT_STAT_HANDLERS,
	SPOT_STAT_HANDLER_NS,
	SPOT_STAT_LATE_NS,
	SPOT_STAT_CASCADED,
	SPOT_STAT_EXHAUSTED,
	SPOT_STAT_MERGED,
	SPOT_STAT_SKIPPED,
	SPOT_STAT_REFUSED,
	SPOT_STAT_REFUSED_READ,
	SPOT_STAT_BUSY,
	SPOT_STAT_MIGRATED,
	SPOT_STAT_CANCELLED,
	SPOT_STAT_CALLED,
	SPOT_STAT_PASSES,
	SPOT_STAT_SPURIOUS,
	SPOT_STAT_PASS_MAX,	/* maxima, in struct spot_cpu */
	SPOT_STAT_PASS_MAX_NS,
	SPOT_NR_STATS
};

/*
 * Buckets of the histogram of lateness: the first is for less than 1024 ns, each
 * further one for twice as much, and the last for all from 2^34 ns on.
 */
#define SPOT_LATE_SHIFT		10
#define SPOT_NR_LATE		26

/**
 * struct spot_cpu - the timers of one CPU
 * @lock: see above
 * @running: the core whose function is being called, or NULL
 * @passing: a pass runs, and arms the hrtimers at its end
 * @turn: the clock of which the next pass takes timers first
 * @hold: CLOCK_MONOTONIC, until when timers that are not critical have to wait,
 *	on whichever clock, since a pass has used up its budget; or 0
 * @soon: CLOCK_MONOTONIC, when there must be a pass for timers of other clocks
 *	that are due, or all but; KTIME_MAX for none
 * @nr: its number
 * @late: ticks that expired, by how late they were
 * @pass_max: most timers in one pass
 * @pass_max_ns: the time that the longest pass took
 * @expiry_lock: see above
 * @expiring: the task in or upon which a pass runs, or NULL
 * @base: the bases
 */
struct spot_cpu {
	spinlock_t lock;	/* protects all but the other lock and its task */
	struct spot_core *running;
	bool passing;
	unsigned int turn;
	s64 hold;
	s64 soon;
	unsigned int nr;
	u64 late[SPOT_NR_LATE];
	u64 pass_max;
	u64 pass_max_ns;
	spinlock_t expiry_lock;	/* held by a pass */
	struct task_struct *expiring;
	struct spot_base base[SPOT_NR_CLOCKS];
};

/* Allocated when a CPU first comes up, freed with the module. */
DECLARE_PER_CPU(struct spot_cpu *, spot_cpus);
DECLARE_PER_CPU(u64[SPOT_NR_STATS], spot_stats);
extern struct spot_tick_len spot_tick_len;

/*
 * What starts and cancels are made of. Here so that it can be had in line: by
 * spot_timer.c, whose users start and cancel their timers one by one, and by
 * spot_dev.c where it does so with very many.
 */

static inline void spot_count_add(enum spot_stat stat, u64 n)
{
	this_cpu_add(spot_stats[stat], n);
}

static inline void spot_count(enum spot_stat stat)
{
	spot_count_add(stat, 1);
}

/* When a wheel tick begins, not beyond the end of time. */
static inline s64 spot_tick_time(u64 tick)
{
	return min_t(u64, tick * spot_tick_len.ns, KTIME_MAX);
}

static inline void spot_core_set(struct spot_core *core, u32 mask, u32 value)
{
	u32 flags = core->entry.user;

	WRITE_ONCE(core->entry.user, (flags & ~mask) | value);
}

/**
 * spot_core_set_state - say where a core is
 * @core: the core
 * @state: the state
 */
static inline void spot_core_set_state(struct spot_core *core,
				       enum spot_state state)
{
	spot_core_set(core, SPOT_CORE_STATE, FIELD_PREP(SPOT_CORE_STATE, state));
}

/* The base of @cpu, and its wheel, for cores with these flags. */
static inline struct spot_base *spot_flags_base(struct spot_cpu *cpu, u32 flags)
{
	return &cpu->base[FIELD_GET(SPOT_CORE_CLOCK, flags)];
}

static inline struct spot_wheel *spot_flags_wheel(struct spot_base *base, u32 flags)
{
	return &base->wheel[flags & SPOT_CORE_CRITICAL ? SPOT_WHEEL_CRITICAL :
							 SPOT_WHEEL_NORMAL];
}

/*
 * A batch holds a CPU's lock from one call to the next, and a pass a queue's,
 * if it needs to. Sparse cannot follow that, and is not told.
 */
static inline void spot_cpu_lock(struct spot_cpu *cpu)
{
	spin_lock(&cpu->lock);
	__release(&cpu->lock);
}

static inline void spot_cpu_unlock(struct spot_cpu *cpu)
{
	__acquire(&cpu->lock);
	spin_unlock(&cpu->lock);
}

static inline struct spot_cpu *spot_core_cpu(const struct spot_core *core)
{
	return per_cpu(spot_cpus, READ_ONCE(core->entry.user) & SPOT_CORE_CPU);
}

static inline bool spot_core_is_on(const struct spot_core *core,
				   const struct spot_cpu *cpu)
{
	return (READ_ONCE(core->entry.user) & SPOT_CORE_CPU) == cpu->nr;
}

struct spot_cpu *spot_batch_lock_other(struct spot_batch *batch,
				       struct spot_core *core);
enum spot_state spot_core_remove(struct spot_core *core);
enum spot_state spot_batch_fetch(struct spot_batch *batch,
				 struct spot_cpu *here,
				 struct spot_core *core, bool remove);
void spot_batch_added(struct spot_batch *batch, struct spot_base *base,
		      struct spot_wheel *wheel, struct spot_core *core,
		      u64 tick, u64 cascaded);

/* spot_batch_begin() and spot_batch_end() of a batch that uses no queue */
static inline void spot_batch_open(struct spot_batch *batch)
{
	local_bh_disable();
	batch->locked = NULL;
	batch->queue = NULL;
	batch->read = 0;
}

static inline void spot_batch_close(struct spot_batch *batch)
{
	struct spot_cpu *cpu = batch->locked;

	if (unlikely(cpu && batch->dirty))
		spot_batch_unlock(batch);
	else if (cpu)
		spot_cpu_unlock(cpu);
	local_bh_enable();
}

static inline void spot_batch_locked(struct spot_batch *batch, struct spot_cpu *cpu)
{
	batch->locked = cpu;
	batch->forwarded = 0;
	batch->dirty = 0;
}

/* Hold the lock of @cpu, and of no other. */
static inline void spot_batch_lock(struct spot_batch *batch, struct spot_cpu *cpu)
{
	if (batch->locked)
		spot_batch_unlock(batch);
	spot_cpu_lock(cpu);
	spot_batch_locked(batch, cpu);
}

/* Hold the lock of this CPU, and of no other. */
static inline void spot_batch_here(struct spot_batch *batch)
{
	struct spot_cpu *here = this_cpu_read(spot_cpus);

	if (batch->locked != here)
		spot_batch_lock(batch, here);
}

/* Hold the lock of the CPU that has @core, and of no other. */
static __always_inline struct spot_cpu *
spot_batch_lock_core(struct spot_batch *batch, struct spot_core *core)
{
	struct spot_cpu *cpu = batch->locked;

	if (!cpu) {
		cpu = spot_core_cpu(core);
		spot_batch_lock(batch, cpu);
	}
	/* one that names the CPU whose lock is held goes on doing so */
	return likely(spot_core_is_on(core, cpu)) ?
	       cpu : spot_batch_lock_other(batch, core);
}

/* It is idle now, and was something else but running. */
static __always_inline void spot_core_stopped(struct spot_core *core,
					      enum spot_state state)
{
	spot_core_set_state(core, SPOT_IDLE);
	spot_count(SPOT_STAT_CANCELLED);
	trace_spottimer_stop(core, state);
}

/* Take @core out of where it is, on @cpu, which is locked. */
static __always_inline enum spot_state
spot_cpu_remove(struct spot_cpu *cpu, struct spot_core *core, u8 *dirty)
{
	u32 flags = core->entry.user;
	struct spot_wheel *wheel;

	if (FIELD_GET(SPOT_CORE_STATE, flags) == SPOT_IDLE)
		return SPOT_IDLE;
	if (unlikely(FIELD_GET(SPOT_CORE_STATE, flags) != SPOT_PENDING))
		return spot_core_remove(core);

	wheel = spot_flags_wheel(spot_flags_base(cpu, flags), flags);
	spot_wheel_remove(wheel, &core->entry);
	if (!wheel->levels)
		*dirty |= BIT(FIELD_GET(SPOT_CORE_CLOCK, flags));
	spot_core_stopped(core, SPOT_PENDING);
	return SPOT_PENDING;
}

/*
 * Hold the lock of the CPU on which @core is to wait, to which it belongs on
 * return: this one, or the one in whose pass it is just expiring, where passes
 * come one after the other, and so do the calls of its function. With @remove it
 * is taken out of where it is. All that is one step for others.
 */
static __always_inline enum spot_state
spot_batch_move(struct spot_batch *batch, struct spot_core *core, bool remove)
{
	struct spot_cpu *here = this_cpu_read(spot_cpus);

	if (unlikely(!spot_core_is_on(core, here)))
		return spot_batch_fetch(batch, here, core, remove);
	spot_batch_here(batch);
	if (unlikely(!spot_core_is_on(core, here)))
		return spot_batch_fetch(batch, here, core, remove);
	return remove ? spot_cpu_remove(here, core, &batch->dirty) :
			spot_core_state(core);
}

/**
 * spot_batch_bring - hold the lock of the CPU on which a core is to wait
 * @batch: the batch
 * @core: the core; one that is pending stays where it is
 *
 * Return: where it is.
 */
static __always_inline enum spot_state
spot_batch_bring(struct spot_batch *batch, struct spot_core *core)
{
	return spot_batch_move(batch, core, false);
}

/**
 * spot_batch_claim - take a core out of where it is, to be added anew
 * @batch: the batch
 * @core: the core
 *
 * Cancels it, and holds the lock of the CPU on which it is to wait, for
 * spot_batch_add().
 *
 * Return: where it was.
 */
static __always_inline enum spot_state
spot_batch_claim(struct spot_batch *batch, struct spot_core *core)
{
	return spot_batch_move(batch, core, true);
}

/**
 * spot_batch_add - let a core wait for its deadline
 * @batch: the batch
 * @core: the core, which was claimed; it belongs to the CPU whose lock is held
 *
 * A wheel may have slept, and be behind the time. That matters only to what would
 * be the next to come out, and so only for that a clock is read; but always for
 * one that may have been set.
 */
static __always_inline void
spot_batch_add(struct spot_batch *batch, struct spot_core *core)
{
	struct spot_cpu *cpu = batch->locked;
	u32 flags = core->entry.user & ~(SPOT_CORE_CPU | SPOT_CORE_STATE);
	struct spot_base *base = spot_flags_base(cpu, flags);
	struct spot_wheel *wheel = spot_flags_wheel(base, flags);
	u64 cascaded = wheel->cascaded;
	u64 tick;

	WRITE_ONCE(core->entry.user, flags | cpu->nr |
				     FIELD_PREP(SPOT_CORE_STATE, SPOT_PENDING));
	tick = spot_wheel_add(wheel, &core->entry);
	if (unlikely(spot_tick_time(tick) < base->armed ||
		     wheel->cascaded != cascaded ||
		     base->clock == SPOT_REALTIME))
		spot_batch_added(batch, base, wheel, core, tick, cascaded);
}

/**
 * spot_batch_add_started - the same, of one that is being started
 * @batch: the batch
 * @core: the core, which was claimed
 */
static __always_inline void
spot_batch_add_started(struct spot_batch *batch, struct spot_core *core)
{
	spot_count(SPOT_STAT_STARTED);
	spot_batch_add(batch, core);
	trace_spottimer_start(core);
}

/* A handler gets @tick. */
static inline void spot_count_tick(const struct spot_tick *tick)
{
	if (likely(!tick->skipped_ticks))
		return;
	spot_count(SPOT_STAT_MERGED);
	spot_count_add(SPOT_STAT_SKIPPED, tick->skipped_ticks);
}

/* What spot_batch_take() does. */
static __always_inline void
spot_core_take(struct spot_batch *batch, struct spot_core *core,
	       struct spot_tick *tick)
{
	s64 now = spot_batch_now(batch, spot_core_clock(core));

	spot_overrun_take(&core->overrun, &core->entry.deadline,
			  max(now, core->entry.deadline), tick);
	spot_core_set_state(core, SPOT_RUNNING);
	spot_count(SPOT_STAT_HANDLERS);
	spot_count_tick(tick);
	if (core->entry.user & SPOT_CORE_CRITICAL)
		core->queue->streak++;
	else
		core->queue->streak = 0;
}

/* cores that are not on a queue, for spot_timer.c */
void spot_core_init(struct spot_core *core, enum spot_clock clock,
		    bool critical, void (*expire)(struct spot_core *core));
struct spot_cpu *spot_batch_expiring(struct spot_batch *batch,
				     struct spot_core *core, bool *by_me);
void spot_cpu_wait(struct spot_cpu *cpu);
s64 spot_call_begin(const struct spot_core *core, spot_timer_fn fn,
		    const struct spot_tick *tick);
void spot_call_end(const struct spot_core *core, const struct spot_tick *tick,
		   enum spot_verdict verdict, s64 begin);

/* for tests that bring a clock of their own, by way of static stubs */
struct spot_base *spot_base_here(enum spot_clock clock);
void spot_base_arm(struct spot_base *base, s64 time);
void spot_base_pass(struct spot_base *base);

int spot_engine_init(void);
void spot_engine_exit(void);
void spot_engine_show(struct seq_file *m);
void spot_engine_debugfs(struct dentry *dir);

#endif /* SPOT_ENGINE_H */
