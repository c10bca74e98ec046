// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that call a function: the interface for other kernel modules.
 *
 * Generations
 * -----------
 * Each start of a timer begins a generation, and the generations of a timer
 * follow each other by number. At most the newest lives. All up to @over are over
 * but for what is still being called; one after the other they are released,
 * which gives them their terminal result, and then they have ended: those up to
 * @last.
 *
 *	1 ... last ... over ... generation
 *	have ended | to be    | lives, if it
 *	           | released | is not over
 *
 * Who has @busy set calls a function of the timer: its handler or its release
 * function, without a lock. Only he releases, in the order of the numbers, and
 * before he lets go he looks whether there is more to be released. So whoever
 * finds the timer busy just moves @over, and leaves the rest to him or waits;
 * and no handler starts before the last one has returned and what was over then
 * has been released (contract B2, D1, E1).
 *
 * Handlers on a workqueue
 * -----------------------
 * The pass makes the timer READY and queues its work, which starts the handler if
 * the timer is still READY. A work does not run beside itself, so what is said
 * above of a pass goes for it too. It may come up without there being anything to
 * do, because its timer was cancelled or started again.
 *
 * Locks
 * -----
 * All members are protected by the lock of the CPU that has the core; see
 * spot_engine.c. On a timer that waits or runs, start and cancel may be called
 * from anywhere at once.
 */
#include <linux/bug.h>
#include <linux/container_of.h>
#include <linux/debugobjects.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "spot_engine.h"
#include "spot_lease.h"
#include "spot_timer.h"

/**
 * struct spot_timer_wait - who waits for the end of a generation
 * @link: place in spot_timer.waits, until @done
 * @end: the end that it waits for, of which it names the generation
 * @done: it is filled in
 */
struct spot_timer_wait {
	struct list_head link;
	struct spot_end end;
	bool done;
};

/* All who sleep until a generation has ended; they are few. */
static DECLARE_WAIT_QUEUE_HEAD(spot_timer_waitq);

static bool spot_timer_fixup_free(void *object, enum debug_obj_state state);

/* What kernels with CONFIG_DEBUG_OBJECTS know of a timer: that it lives. */
static const struct debug_obj_descr spot_timer_debug = {
	.name		= "spot_timer",
	.fixup_free	= spot_timer_fixup_free,
};

/* Whether all of @timer has ended, and nobody is at it. */
static bool spot_timer_at_rest(const struct spot_timer *timer)
{
	return timer->last.generation == timer->generation && !timer->busy;
}

/* The newest generation, which lives, is over. */
static void spot_timer_over(struct spot_timer *timer)
{
	/* of those that are over only the first can have started a handler */
	if (timer->over == timer->last.generation)
		timer->started = timer->core.overrun.delivered;
	timer->over = timer->generation;
}

/* Tell those who wait for the generation that has ended last. */
static void spot_timer_tell(struct spot_timer *timer)
{
	struct spot_timer_wait *wait, *next;
	bool told = false;

	list_for_each_entry_safe(wait, next, &timer->waits, link) {
		if (wait->end.generation != timer->last.generation)
			continue;
		wait->end = timer->last;
		list_del(&wait->link);
		/* what it stands for comes before it, see spot_timer_ended() */
		smp_store_release(&wait->done, true);
		told = true;
	}
	if (told)
		wake_up_all(&spot_timer_waitq);
}

/* The first generation that is over, and has not ended, has now. */
static inline void spot_timer_end_one(struct spot_timer *timer, int result)
{
	timer->last.generation++;
	timer->last.started = timer->started;
	timer->last.result = result;
	timer->started = 0;
	if (unlikely(!list_empty(&timer->waits)))
		spot_timer_tell(timer);
}

/* Nobody is at the timer any more. */
static inline void spot_timer_left(struct spot_timer *timer)
{
	timer->busy = false;
	if (spot_timer_at_rest(timer))
		debug_object_deactivate(timer, &spot_timer_debug);
}

/*
 * The caller, who has made the timer busy, lets go of it, having released what
 * is over. The lock is dropped for that if there is a release function.
 */
static void spot_timer_let_go(struct spot_batch *batch,
			      struct spot_timer *timer)
{
	while (timer->last.generation < timer->over) {
		int result = 0;

		if (timer->release) {
			spot_batch_unlock(batch);
			result = timer->release(timer,
						timer->last.generation + 1);
			spot_batch_state(batch, &timer->core);
		}
		spot_timer_end_one(timer, result);
	}
	spot_timer_left(timer);
}

/*
 * The same for who finds that there is something to release, and nobody at it.
 * Without a release function there is only one that has to end, and it does so at
 * once.
 */
static __always_inline void spot_timer_settle(struct spot_batch *batch,
					      struct spot_timer *timer)
{
	if (timer->busy || timer->last.generation == timer->over)
		return;
	if (timer->release) {
		timer->busy = true;
		spot_timer_let_go(batch, timer);
	} else {
		spot_timer_end_one(timer, 0);
		spot_timer_left(timer);
	}
}

/*
 * Call the function of @timer, which is READY or RUNNING. The lock is dropped for
 * that, and not held on return.
 */
static void spot_timer_call(struct spot_batch *batch, struct spot_timer *timer)
{
	struct spot_core *core = &timer->core;
	struct spot_overrun before = core->overrun;
	/* its function may free it, so this may be the last that we hear of it */
	bool last = !before.period && !timer->release;
	s64 due = core->entry.deadline;
	enum spot_verdict verdict;
	struct spot_tick tick;
	s64 begin;

	spot_overrun_take(&core->overrun, &core->entry.deadline,
			  max(spot_batch_now(batch, spot_core_clock(core)), due),
			  &tick);
	tick.generation = timer->generation;
	spot_core_set_state(core, SPOT_RUNNING);
	timer->busy = true;
	if (last)
		debug_object_deactivate(timer, &spot_timer_debug);
	spot_batch_close(batch);

	begin = spot_call_begin(core, timer->fn, &tick);
	verdict = timer->fn(timer, &tick);
	spot_call_end(core, &tick, verdict, begin);
	if (verdict == SPOT_FREED)
		return;

	spot_batch_open(batch);
	spot_batch_bring(batch, core);
	if (last)
		debug_object_activate(timer, &spot_timer_debug);
	if (timer->over >= tick.generation) {
		/* it was cancelled or started again meanwhile */
		timer->started -= verdict == SPOT_BUSY;
	} else if (verdict == SPOT_BUSY) {
		core->overrun = before;
		core->entry.deadline = due;
		spot_batch_add(batch, core);
	} else if (before.period) {
		spot_overrun_complete(&core->overrun, &core->entry.deadline,
				      spot_clock_now(spot_core_clock(core)));
		spot_batch_add(batch, core);
	} else {
		spot_core_set_state(core, SPOT_IDLE);
		spot_timer_over(timer);
	}
	spot_timer_let_go(batch, timer);
	spot_batch_close(batch);
}

/*
 * Pass over the ticks of @timer that were missed before its lease was adopted, and
 * let it wait for the next one, or end if there is none. False if the tick that
 * is due counts. Its lock is held, and it belongs to the CPU on which it is to
 * wait.
 */
static bool spot_timer_skip(struct spot_batch *batch, struct spot_timer *timer)
{
	struct spot_core *core = &timer->core;
	struct spot_lease *lease = core->lease;
	s64 until;

	if (!lease || timer->epoch > lease->void_epoch)
		return false;
	until = lease->void_until[spot_core_clock(core)];
	if (core->entry.deadline > until)
		return false;
	if (spot_overrun_skip(&core->overrun, &core->entry.deadline, until)) {
		spot_batch_add(batch, core);
	} else {
		spot_core_set_state(core, SPOT_IDLE);
		spot_timer_over(timer);
		spot_timer_settle(batch, timer);
	}
	return true;
}

/* The tick of @timer is due, and admitted. The lock is not held on return. */
static void spot_timer_due(struct spot_batch *batch, struct spot_timer *timer)
{
	if (timer->busy) {
		/* it has to wait for the next wheel tick */
		spot_batch_add(batch, &timer->core);
		spot_batch_close(batch);
	} else if (spot_timer_skip(batch, timer)) {
		spot_batch_close(batch);
	} else {
		spot_timer_call(batch, timer);
	}
}

/* The core is due: in a pass, which has made it RUNNING. */
static void spot_timer_expire(struct spot_core *core)
{
	struct spot_timer *timer = container_of(core, struct spot_timer, core);
	struct spot_batch batch;

	spot_batch_open(&batch);
	/* it may have been cancelled, and started again, while no lock was held */
	if (spot_batch_bring(&batch, core) != SPOT_RUNNING) {
		spot_batch_close(&batch);
	} else if (timer->wq) {
		spot_core_set_state(core, SPOT_READY);
		queue_work(timer->wq, &timer->work);
		spot_batch_close(&batch);
	} else {
		spot_timer_due(&batch, timer);
	}
}

static void spot_timer_work(struct work_struct *work)
{
	struct spot_timer *timer = container_of(work, struct spot_timer, work);
	struct spot_core *core = &timer->core;
	struct spot_batch batch;

	spot_batch_open(&batch);
	if (spot_batch_bring(&batch, core) != SPOT_READY) {
		spot_batch_close(&batch);
	} else if (core->lease &&
		   !spot_lease_admit(core->lease,
				     spot_batch_now(&batch, SPOT_BOOTTIME))) {
		spot_batch_hold(&batch, core);
		spot_batch_close(&batch);
	} else {
		spot_timer_due(&batch, timer);
	}
}

/**
 * spot_timer_setup - prepare a timer, once, before all else
 * @timer: the timer; not on the stack
 * @fn: its function
 * @clock: its clock
 * @flags: 0 or SPOT_CRITICAL
 *
 * Context: any.
 */
void spot_timer_setup(struct spot_timer *timer, spot_timer_fn fn,
		      enum spot_clock clock, unsigned int flags)
{
	debug_object_init(timer, &spot_timer_debug);
	memset(timer, 0, sizeof(*timer));
	spot_core_init(&timer->core, clock, flags & SPOT_CRITICAL,
		       spot_timer_expire);
	timer->fn = fn;
	INIT_WORK(&timer->work, spot_timer_work);
	INIT_LIST_HEAD(&timer->waits);
}
EXPORT_SYMBOL_GPL(spot_timer_setup);

/**
 * spot_timer_start - start a timer, or start it again
 * @timer: the timer, in whatever state; its own function may do so too
 * @when: its schedule
 *
 * Begins a new generation, and ends the one before it, if that lives: its tick
 * does not come any more, and its handler, if it runs, finishes before the new
 * one's first handler starts (contract B2). The first tick does not come before
 * the next wheel tick, nor before it is due (contract A3).
 *
 * Context: any in which bottom halves may be disabled, softirq too; never sleeps,
 * and allocates nothing. May call the release function, for the generation that
 * was replaced.
 *
 * Return: the number of the generation, larger than all before; or -EINVAL, and
 * nothing has changed, if @when is not valid.
 */
s64 spot_timer_start(struct spot_timer *timer, const struct spot_schedule *when)
{
	struct spot_core *core = &timer->core;
	struct spot_batch batch;
	s64 generation;

	if (when->first < 0 || when->period > S64_MAX || when->max > INT_MAX)
		return -EINVAL;

	debug_object_assert_init(timer, &spot_timer_debug);
	spot_batch_open(&batch);
	for (;;) {
		spot_batch_claim(&batch, core);
		if (timer->generation > timer->over)
			spot_timer_over(timer);
		if (timer->busy || timer->last.generation == timer->over)
			break;
		spot_timer_settle(&batch, timer);
		if (!timer->release)
			break;
		/* others may have come in between */
	}
	if (spot_timer_at_rest(timer))
		debug_object_activate(timer, &spot_timer_debug);

	generation = ++timer->generation;
	timer->epoch = core->lease ? core->lease->epoch : 0;
	core->entry.deadline = when->first;
	core->entry.slack = spot_core_slack(when->slack);
	spot_overrun_init(&core->overrun, when->period, when->max);
	/* it was claimed: not spot_batch_start(), which may drop the lock */
	spot_batch_add_started(&batch, core);
	spot_batch_close(&batch);
	return generation;
}
EXPORT_SYMBOL_GPL(spot_timer_start);

/*
 * Cancel a generation and release it, unless somebody else has to. @wait is on
 * the timer's list on return if that is so.
 */
static __always_inline int spot_timer_stop(struct spot_batch *batch,
					   struct spot_timer *timer,
					   u64 generation,
					   struct spot_timer_wait *wait)
{
	struct spot_cpu *cpu = spot_batch_lock_core(batch, &timer->core);

	if (!generation)
		generation = timer->generation;
	if (!generation || generation > timer->generation)
		return -ENOENT;
	if (generation < timer->last.generation)
		return -ESTALE;

	if (generation > timer->over) {
		spot_cpu_remove(cpu, &timer->core, &batch->dirty);
		spot_timer_over(timer);
	}
	if (!timer->release)
		spot_timer_settle(batch, timer);
	if (generation == timer->last.generation) {
		wait->end = timer->last;
		return 0;
	}
	wait->end.generation = generation;
	wait->done = false;
	list_add_tail(&wait->link, &timer->waits);
	spot_timer_settle(batch, timer);
	return wait->done ? 0 : -EINPROGRESS;
}

/**
 * spot_timer_cancel - end a generation, without waiting
 * @timer: the timer
 * @generation: which one, or 0 for the newest
 * @end: where to put how it has ended, or NULL
 *
 * Context: as for spot_timer_start().
 *
 * Return: 0 if it has ended: no handler of it starts any more, and all have
 * returned; -EINPROGRESS if it ends when its handler, or its release function,
 * has returned (contract E3, E4); -ESTALE if a later one has ended already, and
 * this one's result is forgotten; -ENOENT if there has never been such a one.
 */
int spot_timer_cancel(struct spot_timer *timer, u64 generation,
		      struct spot_end *end)
{
	struct spot_timer_wait wait;
	struct spot_batch batch;
	int ret;

	debug_object_assert_init(timer, &spot_timer_debug);
	spot_batch_open(&batch);
	ret = spot_timer_stop(&batch, timer, generation, &wait);
	if (ret == -EINPROGRESS)
		list_del(&wait.link);
	spot_batch_close(&batch);
	if (!ret && end)
		*end = wait.end;
	return ret;
}
EXPORT_SYMBOL_GPL(spot_timer_cancel);

/* A timer that lives is just being freed, which was reported: take it out. */
static bool spot_timer_fixup_free(void *object, enum debug_obj_state state)
{
	if (state != ODEBUG_STATE_ACTIVE)
		return false;
	spot_timer_cancel(object, 0, NULL);
	debug_object_free(object, &spot_timer_debug);
	return true;
}

static bool spot_timer_ended(struct spot_timer_wait *wait)
{
	/* what it stands for comes after it, see spot_timer_tell() */
	return smp_load_acquire(&wait->done);
}

/**
 * spot_timer_cancel_sync - end a generation, and wait until it has ended
 * @timer: the timer
 * @generation: which one, or 0 for the newest
 * @end: where to put how it has ended, or NULL
 *
 * Afterwards nobody of ours touches the timer, unless it is started again: it may
 * be freed.
 *
 * Context: process context, for a timer with a workqueue or a release function:
 * sleeps, uninterruptibly. Of other timers any context in which bottom halves may
 * be disabled; it spins then (on PREEMPT_RT it sleeps) until a pass has ended. Not
 * with a lock held that the timer's functions take, nor in the function of
 * another timer.
 *
 * Return: 0; or -EINPROGRESS if called by the timer's own function, which cannot
 * wait for itself: the timer ends when that returns (contract E4); or -ESTALE or
 * -ENOENT, as spot_timer_cancel().
 */
int spot_timer_cancel_sync(struct spot_timer *timer, u64 generation,
			   struct spot_end *end)
{
	bool in_work = timer->wq && current_work() == &timer->work;
	struct spot_timer_wait wait;
	struct spot_batch batch;
	struct spot_cpu *pass;
	bool in_pass = false;
	int ret;

	debug_object_assert_init(timer, &spot_timer_debug);

	spot_batch_open(&batch);
	ret = spot_timer_stop(&batch, timer, generation, &wait);
	pass = spot_batch_expiring(&batch, &timer->core, &in_pass);
	if (ret == -EINPROGRESS && (in_pass || in_work))
		list_del(&wait.link);
	spot_batch_close(&batch);
	if (in_pass || in_work)
		goto out;
	might_sleep_if(timer->wq || timer->release);

	/* it may be just about to call the function, or to queue the work */
	if (pass)
		spot_cpu_wait(pass);
	if (timer->wq)
		flush_work(&timer->work);
	if (ret == -EINPROGRESS) {
		/* it has ended with the pass if it has nothing that sleeps */
		if (!spot_timer_ended(&wait))
			wait_event(spot_timer_waitq, spot_timer_ended(&wait));
		/* who has told us has to be out of there */
		spot_batch_open(&batch);
		spot_batch_state(&batch, &timer->core);
		spot_batch_close(&batch);
		ret = 0;
	}
out:
	if (!ret && end)
		*end = wait.end;
	return ret;
}
EXPORT_SYMBOL_GPL(spot_timer_cancel_sync);

/**
 * spot_timer_resume - let a timer that is held go on
 * @timer: the timer
 *
 * To be called after a new grant of its lease. What the timer missed while the
 * lease had run out is skipped (contract G4); if that was its only tick, its
 * generation ends. Does nothing to a timer that is not held.
 *
 * Context: as for spot_timer_start().
 */
void spot_timer_resume(struct spot_timer *timer)
{
	struct spot_core *core = &timer->core;
	struct spot_batch batch;

	debug_object_assert_init(timer, &spot_timer_debug);
	spot_batch_open(&batch);
	if (spot_batch_bring(&batch, core) == SPOT_HELD &&
	    !spot_timer_skip(&batch, timer))
		spot_batch_add(&batch, core);
	spot_batch_close(&batch);
}
EXPORT_SYMBOL_GPL(spot_timer_resume);

/**
 * spot_timer_query - look at a timer
 * @timer: the timer
 * @info: to be filled in
 *
 * Context: as for spot_timer_start().
 */
void spot_timer_query(struct spot_timer *timer, struct spot_timer_info *info)
{
	struct spot_core *core = &timer->core;
	struct spot_batch batch;
	s64 now;

	debug_object_assert_init(timer, &spot_timer_debug);
	spot_batch_open(&batch);
	info->state = spot_batch_state(&batch, core);
	info->generation = timer->generation;
	info->started = core->overrun.delivered;
	info->scheduled = core->overrun.last;
	info->period = core->overrun.period;
	info->remaining = 0;
	now = spot_batch_now(&batch, spot_core_clock(core));
	if (info->state != SPOT_IDLE && core->entry.deadline > now)
		info->remaining = core->entry.deadline - now;
	spot_batch_close(&batch);
}
EXPORT_SYMBOL_GPL(spot_timer_query);
