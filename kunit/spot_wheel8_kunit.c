// SPDX-License-Identifier: GPL-2.0
/*
 * The wheel's KUnit tests at 8 slots a level, where figures can be followed by
 * hand: another copy of the wheel, under other names, beside the real one.
 */
#define SPOT_WHEEL_BITS		3
#define WHEEL_SUITE		"spot_wheel_8"

#define spot_tick_len_init	wheel8_tick_len_init
#define spot_tick_floor		wheel8_tick_floor
#define spot_tick_ceil		wheel8_tick_ceil
#define spot_wheel_init		wheel8_init
#define spot_wheel_add		wheel8_add
#define spot_wheel_remove	wheel8_remove
#define spot_wheel_next		wheel8_next
#define spot_wheel_forward	wheel8_forward
#define spot_wheel_rewind	wheel8_rewind
#define spot_wheel_expire	wheel8_expire
#define spot_wheel_first	wheel8_first

#include "../spot_wheel.c"
#include "spot_wheel_kunit.c"
