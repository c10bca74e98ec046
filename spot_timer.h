/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Timers for other kernel modules, and for spottimer's own character device.
 *
 * There are two ways to use them:
 *
 *   - A struct spot_timer calls a function when it is due, in softirq or on a
 *     workqueue. It has generations, a release function and a cancel that all
 *     callers see end alike. That is for most users; see below.
 *   - A struct spot_core goes on a queue when it is due, from which its user
 *     takes it, and what is done to cores is done in batches. That is for those
 *     who have very many, and a lock of their own; see the second half of this
 *     file. The character device is such a user, and has nothing else.
 *
 * Both follow the same policies, and may run under a lease (see spot_lease.h).
 * Documentation/kernel-api.rst has examples. Symbols are in the namespace
 * SPOTTIMER; errors are negative numbers.
 */
#ifndef SPOT_TIMER_H
#define SPOT_TIMER_H

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "spot_overrun.h"
#include "spot_wheel.h"

struct spot_cpu;
struct spot_lease;

/**
 * enum spot_clock - the clock of a timer
 * @SPOT_MONOTONIC: CLOCK_MONOTONIC
 * @SPOT_BOOTTIME: CLOCK_BOOTTIME, which counts suspend
 * @SPOT_REALTIME: CLOCK_REALTIME, which may be set (contract A13)
 * @SPOT_NR_CLOCKS: how many there are
 */
enum spot_clock {
	SPOT_MONOTONIC,
	SPOT_BOOTTIME,
	SPOT_REALTIME,
	SPOT_NR_CLOCKS
};

/**
 * enum spot_state - where a timer is
 * @SPOT_IDLE: not started, or ended
 * @SPOT_PENDING: it waits for its time
 * @SPOT_READY: it is due, and its handler is about to start
 * @SPOT_RUNNING: its handler runs
 * @SPOT_HELD: it is due, but its lease did not admit it; it stays so until its
 *	user resumes, restarts or cancels it
 *
 * The values of all but the first are those of enum spottimer_state.
 */
enum spot_state {
	SPOT_IDLE,
	SPOT_PENDING,
	SPOT_READY,
	SPOT_RUNNING,
	SPOT_HELD,
};

s64 spot_clock_now(enum spot_clock clock);

/*
 * The core of a timer: what waits in a wheel, and is then due
 */

struct spot_core;

/**
 * struct spot_queue - where cores wait that are due
 * @lock: protects the lists; taken inside spottimer's per-CPU lock, with bottom
 *	halves disabled
 * @ready: cores in the order in which they came due
 * @critical: critical ones, likewise
 * @streak: critical ones taken since the last other one; its user's to
 *	serialise
 * @notify: called after cores were added: in softirq or with bottom halves
 *	disabled, maybe under a spinlock, in an RCU read-side section; it may
 *	wake somebody up, not more. The queue must be freed by way of RCU.
 *
 * The cores of one queue are its user's to serialise: no two calls on one of
 * them at once. Only its expiry runs beside them.
 */
struct spot_queue {
	spinlock_t lock;	/* protects the lists */
	struct list_head ready;
	struct list_head critical;
	unsigned int streak;
	void (*notify)(struct spot_queue *queue);
};

/**
 * struct spot_core - the core of a timer
 * @entry: its place in a wheel or on its queue, its due time and its flags; the
 *	link is its user's while it is running, held or idle
 * @overrun: which tick comes next
 * @expire: what to call, of one without a queue
 * @queue: where to go, of one with a queue
 * @lease: the lease it runs under, or NULL. To be set while idle.
 *
 * The members are private but for those named in the functions' comments.
 */
struct spot_core {
	struct spot_wheel_entry entry;
	struct spot_overrun overrun;
	union {
		void (*expire)(struct spot_core *core);
		struct spot_queue *queue;
	};
	struct spot_lease *lease;
};

/*
 * Timers that call a function
 */

struct spot_timer;

/**
 * enum spot_verdict - what a timer's function says
 * @SPOT_DONE: the tick was handled
 * @SPOT_BUSY: it could not be, as its gate is busy: nothing was done, the tick is
 *	kept, and the function is called again at the next wheel tick, with
 *	what the timer's policy makes of it by then (contract F5)
 * @SPOT_FREED: the function has freed the timer, which must be one that does not
 *	repeat, has no release function, and was not started again. Nothing of
 *	it is touched any more.
 */
enum spot_verdict {
	SPOT_DONE,
	SPOT_BUSY,
	SPOT_FREED,
};

/**
 * typedef spot_timer_fn - what a timer calls when it is due
 * @timer: the timer
 * @tick: which tick it is, and of which generation
 *
 * Called in softirq, or in process context if the timer has a workqueue. No lock
 * is held: all functions for timers may be used, on this one too. No two calls
 * for one timer run at once (contract D1), also when it is started again
 * meanwhile.
 *
 * Return: see enum spot_verdict.
 */
typedef enum spot_verdict (*spot_timer_fn)(struct spot_timer *timer,
					   const struct spot_tick *tick);

/**
 * typedef spot_release_fn - gives back what a generation of a timer held
 * @timer: the timer; it must not be freed here
 * @generation: the generation that ends
 *
 * Called once for each generation, after its last handler, by whoever ends it: a
 * caller of spot_timer_start(), spot_timer_cancel() or spot_timer_cancel_sync(),
 * or where the handler ran. Bottom halves are disabled. It must not call those
 * functions on @timer. A tick of the next generation that comes due meanwhile is
 * tried again every wheel tick.
 *
 * Return: the terminal result of the generation (contract E2): 0, or an error.
 */
typedef int (*spot_release_fn)(struct spot_timer *timer, u64 generation);

/* spot_timer_setup(): expire ahead of the budget and of others (contract A9) */
#define SPOT_CRITICAL		BIT(0)

/**
 * struct spot_end - how a generation has ended
 * @generation: which one
 * @started: handlers that it started (contract E6)
 * @result: its terminal result: 0, or the error of its release function
 */
struct spot_end {
	u64 generation;
	u64 started;
	int result;
};

/**
 * struct spot_timer - a timer that calls a function
 * @core: what waits in a wheel
 * @fn: the function
 * @release: called at the end of each generation, or NULL. The user's to set
 *	before the first start.
 * @wq: where to call @fn, or NULL for softirq. The user's to set before the
 *	first start; the workqueue must outlive the timer, and not be one of
 *	bottom halves (WQ_BH).
 * @work: the call, of a timer with a workqueue
 * @epoch: the epoch of its lease when the newest generation was started
 * @generation: the newest generation, 0 before the first start
 * @over: generations up to this one are over
 * @last: the last generation that has ended
 * @started: handlers started by the first generation that is over and has not
 *	ended
 * @busy: somebody is calling one of its functions
 * @waits: those who wait for a generation's end
 *
 * The caller embeds or allocates it; nothing is allocated later. core.lease may be
 * set while the timer is idle. The other members are private.
 */
struct spot_timer {
	struct spot_core core;
	spot_timer_fn fn;
	spot_release_fn release;
	struct workqueue_struct *wq;
	struct work_struct work;
	u64 epoch;
	u64 generation;
	u64 over;
	struct spot_end last;
	u64 started;
	bool busy;
	struct list_head waits;
};

/**
 * struct spot_schedule - when a timer is due
 * @first: when its first tick is due, in nanoseconds on the timer's clock; one
 *	that is past is due at the next wheel tick, one beyond KTIME_MAX never
 * @period: nanoseconds between ticks, at most S64_MAX; 0 for one tick
 * @slack: nanoseconds by which it may fire later, to share wake-ups
 * @max: most ticks per catch-up, 1 to INT_MAX: CATCH_UP, with SPOT_SKIP_LATE = 1;
 *	or SPOT_DELAY_NEXT
 */
struct spot_schedule {
	s64 first;
	u64 period;
	u64 slack;
	u32 max;
};

/**
 * struct spot_timer_info - what there is to know about a timer
 * @generation: the newest generation, 0 before the first start
 * @started: handlers that it has started
 * @scheduled: nominal tick of the last handler, 0 before the first
 * @period: nanoseconds between ticks
 * @remaining: nanoseconds to the next due time, 0 if it is past or none
 * @state: where it is
 */
struct spot_timer_info {
	u64 generation;
	u64 started;
	u64 scheduled;
	u64 period;
	s64 remaining;
	enum spot_state state;
};

void spot_timer_setup(struct spot_timer *timer, spot_timer_fn fn,
		      enum spot_clock clock, unsigned int flags);
s64 spot_timer_start(struct spot_timer *timer, const struct spot_schedule *when);
int spot_timer_cancel(struct spot_timer *timer, u64 generation,
		      struct spot_end *end);
int spot_timer_cancel_sync(struct spot_timer *timer, u64 generation,
			   struct spot_end *end);
void spot_timer_resume(struct spot_timer *timer);
void spot_timer_query(struct spot_timer *timer, struct spot_timer_info *info);

/*
 * Queues of cores, and batches of operations on them
 */

/* Critical cores taken from a queue in a row while others wait */
#define SPOT_CRITICAL_STREAK	32U

/* spot_core.entry.user: written under the per-CPU lock, read without */
#define SPOT_CORE_CPU		GENMASK(12, 0)
#define SPOT_CORE_CLOCK		GENMASK(15, 14)
#define SPOT_CORE_STATE		GENMASK(18, 16)
#define SPOT_CORE_CRITICAL	BIT(19)
#define SPOT_CORE_QUEUED	BIT(20)

/**
 * struct spot_batch - several operations under as few locks as possible
 * @locked: the CPU whose lock is held, or NULL
 * @queue: a queue that must be told of additions, or NULL
 * @now: the time, per clock, as far as it was read
 * @read: bit n is set where clock n was read
 * @forwarded: bit n is set where clock n's wheels were brought up to date
 * @dirty: bit n is set where clock n's hrtimer must be moved or disarmed
 *
 * Between spot_batch_begin() and spot_batch_end() bottom halves are disabled
 * and a per-CPU lock may be held: nothing may sleep, no function of this
 * header may be called that does not take the batch, and a batch should end
 * after some tens of operations. All see the same time.
 */
struct spot_batch {
	struct spot_cpu *locked;
	struct spot_queue *queue;
	s64 now[SPOT_NR_CLOCKS];
	u8 read;
	u8 forwarded;
	u8 dirty;
};

extern unsigned int spot_tick_ns;

void spot_queue_init(struct spot_queue *queue,
		     void (*notify)(struct spot_queue *queue));
unsigned int spot_queue_pop(struct spot_queue *queue, struct spot_core **cores,
			    unsigned int n, unsigned int *streak);
void spot_queue_unpop(struct spot_queue *queue, struct spot_core *core);

/**
 * spot_core_state - where a core is
 * @core: the core
 *
 * Any context.
 *
 * Return: the state. A PENDING timer may be READY or HELD the next moment.
 */
static inline enum spot_state spot_core_state(const struct spot_core *core)
{
	return FIELD_GET(SPOT_CORE_STATE, READ_ONCE(core->entry.user));
}

/**
 * spot_core_clock - on which clock a core runs
 * @core: the core
 *
 * Return: the clock.
 */
static inline enum spot_clock spot_core_clock(const struct spot_core *core)
{
	return FIELD_GET(SPOT_CORE_CLOCK, READ_ONCE(core->entry.user));
}

/**
 * spot_core_slack - slack as it is kept in a core
 * @ns: nanoseconds
 *
 * Return: wheel ticks.
 */
static inline u32 spot_core_slack(u64 ns)
{
	return ns ? min_t(u64, U32_MAX, div_u64(ns, spot_tick_ns)) : 0;
}

/**
 * spot_core_init_queued - prepare a core that goes on a queue
 * @core: the core
 * @clock: its clock
 * @critical: expire and deliver it ahead of others (contract A9)
 * @queue: the queue
 *
 * Any context.
 */
static inline void spot_core_init_queued(struct spot_core *core,
					 enum spot_clock clock, bool critical,
					 struct spot_queue *queue)
{
	core->entry.user = SPOT_CORE_QUEUED |
			   (critical ? SPOT_CORE_CRITICAL : 0) |
			   FIELD_PREP(SPOT_CORE_CLOCK, clock) |
			   FIELD_PREP(SPOT_CORE_CPU, raw_smp_processor_id());
	core->queue = queue;
	core->lease = NULL;
}

/**
 * spot_batch_now - the time that a batch goes by
 * @batch: the batch
 * @clock: the clock
 *
 * Return: nanoseconds.
 */
static inline s64 spot_batch_now(struct spot_batch *batch,
				 enum spot_clock clock)
{
	if (!(batch->read & BIT(clock))) {
		batch->now[clock] = spot_clock_now(clock);
		batch->read |= BIT(clock);
	}
	return batch->now[clock];
}

void spot_batch_begin(struct spot_batch *batch);
void spot_batch_end(struct spot_batch *batch);
void spot_batch_unlock(struct spot_batch *batch);
void spot_batch_start(struct spot_batch *batch, struct spot_core *core);
enum spot_state spot_batch_state(struct spot_batch *batch,
				 struct spot_core *core);
enum spot_state spot_batch_cancel(struct spot_batch *batch,
				  struct spot_core *core);
void spot_batch_take(struct spot_batch *batch, struct spot_core *core,
		     struct spot_tick *tick);
bool spot_batch_complete(struct spot_batch *batch, struct spot_core *core,
			 bool go_on);
void spot_batch_hold(struct spot_batch *batch, struct spot_core *core);
void spot_batch_resume(struct spot_batch *batch, struct spot_core *core);
void spot_batch_push(struct spot_batch *batch, struct spot_core *core);

#endif /* SPOT_TIMER_H */
