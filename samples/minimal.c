// SPDX-License-Identifier: GPL-2.0
/* Take five ticks of a timer that repeats every 100 ms. */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <linux/spottimer.h>

int main(void)
{
	struct spottimer_register reg = { .key = 7, .clock = CLOCK_MONOTONIC,
					  .first = 100000000, .period = 100000000 };
	struct spottimer_cancel cancel = { .key = 7 };
	struct spottimer_batch batch = { .entries = (unsigned long)&reg,
					 .count = 1, .stride = sizeof(reg) };
	struct spottimer_record rec;
	int i, fd = open("/dev/spottimer", O_RDWR);

	if (fd < 0 || ioctl(fd, SPOTTIMER_IOC_REGISTER, &batch) < 0)
		err(1, "/dev/spottimer");
	for (i = 0; i < 5 && !reg.error; i++) {
		if (read(fd, &rec, sizeof(rec)) < 0)
			err(1, "read");
		printf("tick %llu, %llu skipped\n", rec.scheduled_index,
		       rec.skipped_ticks);
	}
	batch.entries = (unsigned long)&cancel;
	batch.stride = sizeof(cancel);
	if (ioctl(fd, SPOTTIMER_IOC_CANCEL, &batch) < 0)
		err(1, "cancel");
	close(fd);
	return reg.error || cancel.error;
}
