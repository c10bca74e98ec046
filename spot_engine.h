/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the engine is for spottimer's own files only.
 */
#ifndef SPOT_ENGINE_H
#define SPOT_ENGINE_H

#include "spot_timer.h"

struct dentry;
struct seq_file;
struct spot_base;

/* Range of the wheel tick, a load-time parameter (contract A2) */
#define SPOT_TICK_NS_MIN	100000U
#define SPOT_TICK_NS_MAX	1000000000U

/* cores that are not on a queue, for spot_timer.c */
void spot_core_init(struct spot_core *core, enum spot_clock clock,
		    bool critical, void (*expire)(struct spot_core *core));
void spot_core_set_state(struct spot_core *core, enum spot_state state);
enum spot_state spot_batch_bring(struct spot_batch *batch,
				 struct spot_core *core);
enum spot_state spot_batch_claim(struct spot_batch *batch,
				 struct spot_core *core);
struct spot_cpu *spot_batch_expiring(struct spot_batch *batch,
				     struct spot_core *core, bool *by_me);
void spot_cpu_wait(struct spot_cpu *cpu);
s64 spot_call_begin(const struct spot_core *core, spot_timer_fn fn,
		    const struct spot_tick *tick);
void spot_call_end(const struct spot_core *core, const struct spot_tick *tick,
		   enum spot_verdict verdict, s64 begin);
void spot_batch_add(struct spot_batch *batch, struct spot_core *core);
void spot_batch_add_started(struct spot_batch *batch, struct spot_core *core);

/* for tests that bring a clock of their own, by way of static stubs */
struct spot_base *spot_base_here(enum spot_clock clock);
void spot_base_arm(struct spot_base *base, s64 time);
void spot_base_pass(struct spot_base *base);

int spot_engine_init(void);
void spot_engine_exit(void);
void spot_engine_show(struct seq_file *m);
void spot_engine_debugfs(struct dentry *dir);

#endif /* SPOT_ENGINE_H */
