// SPDX-License-Identifier: GPL-2.0
/*
 * A user of spot_timer.h: watch over many sessions with two timers each.
 *
 * The ping timer repeats, and its function runs in softirq: it sends a ping, or
 * would. The idle timer has one tick and is started again by every message of
 * the session (that is cheap, and what most of the work is in a server); if it
 * does fire the session is closed, which may sleep, so its function runs on a
 * workqueue. One timer stands for the peers: it lets every session that is to
 * live send a message every now and then. Sessions whose number is a multiple of
 * ten are silent, and have to be closed.
 *
 * The parameters 'alive', 'pings' and 'early' say how it is going; the last one
 * counts sessions that were closed before their time, and stays 0.
 */
#include <linux/atomic.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "spot_lease.h"
#include "spot_timer.h"

static unsigned int sessions = 10000;
module_param(sessions, uint, 0444);
MODULE_PARM_DESC(sessions, "sessions to watch over (default 10000)");

static unsigned int ping_ms = 100;
module_param(ping_ms, uint, 0444);
MODULE_PARM_DESC(ping_ms, "time between pings (default 100)");

static unsigned int idle_ms = 1000;
module_param(idle_ms, uint, 0444);
MODULE_PARM_DESC(idle_ms, "a session without a message for so long is closed (default 1000)");

struct session {
	struct spot_timer ping;
	struct spot_timer idle;
	s64 heard;	/* of it for the last time */
	bool closed;
};

static struct session *session;
static struct workqueue_struct *closing;
static struct spot_timer peers;
static atomic_t alive, pings, early;

static bool is_silent(unsigned int n)
{
	return n % 10 == 0;
}

static enum spot_verdict session_ping(struct spot_timer *timer,
				      const struct spot_tick *tick)
{
	/* a late ping stands for those that it skips */
	atomic_inc(&pings);
	return SPOT_DONE;
}

static enum spot_verdict session_idle(struct spot_timer *timer,
				      const struct spot_tick *tick)
{
	struct session *s = container_of(timer, struct session, idle);
	s64 now = spot_clock_now(SPOT_MONOTONIC);
	struct spot_timer_info info;
	s64 heard;

	/*
	 * It may be heard of while this runs, which is too late; then its timer
	 * has been started again, before that was noted by session_touch().
	 */
	heard = smp_load_acquire(&s->heard);
	spot_timer_query(timer, &info);
	if (info.generation == tick->generation &&
	    now - heard < idle_ms * (s64)NSEC_PER_MSEC)
		atomic_inc(&early);

	/* the function of ping waits for nothing, so it may be waited for here */
	spot_timer_cancel_sync(&s->ping, 0, NULL);
	WRITE_ONCE(s->closed, true);
	atomic_dec(&alive);
	return SPOT_DONE;
}

/* The end of the time that the session has, counted from now. */
static void session_touch(struct session *s)
{
	s64 now = spot_clock_now(SPOT_MONOTONIC);
	const struct spot_schedule when = {
		.first = now + idle_ms * (s64)NSEC_PER_MSEC,
		.slack = NSEC_PER_MSEC,
		.max = SPOT_SKIP_LATE,
	};

	if (spot_timer_start(&s->idle, &when) > 0)
		/* comes after the start, see session_idle() */
		smp_store_release(&s->heard, now);
}

static void session_open(struct session *s)
{
	const struct spot_schedule when = {
		.first = spot_clock_now(SPOT_MONOTONIC) +
			 ping_ms * (s64)NSEC_PER_MSEC,
		.period = ping_ms * (u64)NSEC_PER_MSEC,
		.slack = 4 * NSEC_PER_MSEC,
		.max = SPOT_SKIP_LATE,
	};

	spot_timer_setup(&s->ping, session_ping, SPOT_MONOTONIC, 0);
	spot_timer_setup(&s->idle, session_idle, SPOT_MONOTONIC, 0);
	s->idle.wq = closing;
	atomic_inc(&alive);
	spot_timer_start(&s->ping, &when);
	session_touch(s);
}

/* A sixteenth of the peers at a time; all come up long before they are idle. */
static enum spot_verdict peers_speak(struct spot_timer *timer,
				     const struct spot_tick *tick)
{
	unsigned int n;

	for (n = tick->delivery_index % 16; n < sessions; n += 16)
		if (!is_silent(n) && !READ_ONCE(session[n].closed))
			session_touch(&session[n]);
	return SPOT_DONE;
}

static int __init watchdog_init(void)
{
	struct spot_schedule when = { .max = SPOT_DELAY_NEXT };
	unsigned int n;

	if (!sessions || !ping_ms || !idle_ms)
		return -EINVAL;
	session = vcalloc(sessions, sizeof(*session));
	if (!session)
		return -ENOMEM;
	closing = alloc_workqueue("watchdog", WQ_UNBOUND, 0);
	if (!closing) {
		vfree(session);
		return -ENOMEM;
	}
	for (n = 0; n < sessions; n++)
		session_open(&session[n]);

	when.period = idle_ms * (u64)NSEC_PER_MSEC / 64;
	when.first = spot_clock_now(SPOT_MONOTONIC) + when.period;
	spot_timer_setup(&peers, peers_speak, SPOT_MONOTONIC, 0);
	spot_timer_start(&peers, &when);
	return 0;
}

static void __exit watchdog_exit(void)
{
	unsigned int n;

	/* first who starts others, then they; afterwards nothing of us is called */
	spot_timer_cancel_sync(&peers, 0, NULL);
	for (n = 0; n < sessions; n++) {
		spot_timer_cancel_sync(&session[n].idle, 0, NULL);
		spot_timer_cancel_sync(&session[n].ping, 0, NULL);
	}
	destroy_workqueue(closing);
	vfree(session);
}

static int get_count(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read((atomic_t *)kp->arg));
}

static const struct kernel_param_ops count_ops = { .get = get_count };
module_param_cb(alive, &count_ops, &alive, 0444);
MODULE_PARM_DESC(alive, "sessions that are open now; read only");
module_param_cb(pings, &count_ops, &pings, 0444);
MODULE_PARM_DESC(pings, "pings sent so far; read only");
module_param_cb(early, &count_ops, &early, 0444);
MODULE_PARM_DESC(early, "sessions closed before their time; read only");

module_init(watchdog_init);
module_exit(watchdog_exit);

MODULE_DESCRIPTION("sample: a watchdog over many sessions");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "SPOTTIMER");
