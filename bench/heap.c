// SPDX-License-Identifier: GPL-2.0
/*
 * One timerfd over a heap in the process: the timers of libevent, which knows
 * the time to the microsecond then (EVENT_BASE_FLAG_PRECISE_TIMER).
 */
#include "bench.h"

#include <event2/event.h>

static struct event_base *base;
static struct event **events;
static struct event *wake;
static __s64 wake_at;
static long taken;

/* It wants to know how long from now; the clock is read for some at a time. */
static void add(struct event *event, __s64 ns)
{
	struct timeval tv = { 0, 0 };

	if (ns > 0) {
		tv.tv_sec = ns / SEC;
		tv.tv_usec = (ns % SEC + USEC - 1) / USEC;
	}
	if (evtimer_add(event, &tv))
		errx(1, "evtimer_add");
}

static void heap_fired(evutil_socket_t fd, short what, void *arg)
{
	long i = (struct event **)arg - events;

	(void)fd;
	(void)what;
	taken++;
	fired(i);
	if (timers[i].period)
		add(events[i], timers[i].due - now());
}

static void heap_wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void heap_open(long n)
{
	struct event_config *config = event_config_new();

	if (!config ||
	    event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER))
		errx(1, "event_config");
	base = event_base_new_with_config(config);
	event_config_free(config);
	events = calloc(n, sizeof(*events));
	if (!base || !events)
		errx(1, "event_base");
	memset(events, 0, n * sizeof(*events));
	wake = evtimer_new(base, heap_wake, NULL);
	wake_at = 0;
}

static void heap_rearm(long first, long n)
{
	__s64 begin = 0;
	long i;

	for (i = 0; i < n; i++) {
		if (i % 64 == 0)
			begin = now();
		add(events[first + i], timers[first + i].due - begin);
	}
}

static void heap_arm(long first, long n)
{
	__s64 begin = 0;
	long i;

	for (i = 0; i < n; i++) {
		struct event **event = &events[first + i];

		if (i % 64 == 0)
			begin = now();
		*event = evtimer_new(base, heap_fired, event);
		if (!*event)
			errx(1, "evtimer_new");
		add(*event, timers[first + i].due - begin);
	}
}

static void heap_cancel(long first, long n)
{
	long i;

	for (i = first; i < first + n; i++)
		event_free(events[i]);
}

static long heap_deliver(__s64 until)
{
	if (until != wake_at) {
		wake_at = until;
		add(wake, until - now());
	}
	taken = 0;
	if (event_base_loop(base, EVLOOP_ONCE) < 0)
		errx(1, "event_base_loop");
	return taken;
}

static void heap_close(void)
{
	event_free(wake);
	event_base_free(base);
	free(events);
}

const struct rival heap = {
	.name = "heap",
	.max = 1000000,
	.open = heap_open,
	.arm = heap_arm,
	.rearm = heap_rearm,
	.cancel = heap_cancel,
	.deliver = heap_deliver,
	.close = heap_close,
};
