/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the selftests share: the ioctls for one entry, taking records, waiting.
 *
 * Helpers return 0 or a number of things, or a negative error number, and
 * leave it to the test to say what it expects. The guest may be slow without
 * bounds: a test waits for what must happen for as long as PATIENCE, and looks
 * for a moment only (A_WHILE) to see that something does not.
 */
#ifndef SPOTTIMER_TEST_H
#define SPOTTIMER_TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/spottimer.h>

#include <kselftest_harness.h>

/* A machine that emulates another one, and is busy, needs patience. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

#define MSEC		1000000LL
#define SEC		1000000000LL
#define HOUR		(3600 * SEC)

#define PATIENCE	15000	/* ms */
#define A_WHILE		40	/* ms */

/*
 * Time
 */

static inline __s64 now_on(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline __s64 now(void)
{
	return now_on(CLOCK_MONOTONIC);
}

/* For tests whose subject is that somebody is late. */
static inline void sleep_until_on(clockid_t clock, __s64 time)
{
	struct timespec ts = { time / SEC, time % SEC };

	while (clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

static inline void sleep_until(__s64 time)
{
	sleep_until_on(CLOCK_MONOTONIC, time);
}

/* Between two looks at something that cannot be waited for otherwise. */
static inline bool look_again(__s64 *since)
{
	if (!*since)
		*since = now();
	else if (now() - *since > PATIENCE * MSEC)
		return false;
	usleep(500);
	return true;
}

/*
 * The ioctls
 */

static inline int spot_open(int flags)
{
	return open("/dev/spottimer", O_RDWR | O_CLOEXEC | flags);
}

static inline int spot_batch(int fd, unsigned int cmd, void *entries,
			     __u32 count, __u32 stride)
{
	struct spottimer_batch batch = {
		.entries = (uintptr_t)entries,
		.count = count,
		.stride = stride,
	};
	int ret = ioctl(fd, cmd, &batch);

	return ret < 0 ? -errno : ret;
}

#define SPOT_ONE(name, cmd)						\
static inline int spot_##name(int fd, struct spottimer_##name *entry)	\
{									\
	int ret;							\
									\
	/* only what the kernel writes here may look like a result */	\
	entry->error = -EPROTO;						\
	ret = spot_batch(fd, cmd, entry, 1, sizeof(*entry));		\
	if (ret != 1)							\
		return ret < 0 ? ret : -EPROTO;				\
	return entry->error;						\
}

SPOT_ONE(register, SPOTTIMER_IOC_REGISTER)
SPOT_ONE(cancel, SPOTTIMER_IOC_CANCEL)
SPOT_ONE(complete, SPOTTIMER_IOC_COMPLETE)
SPOT_ONE(lease, SPOTTIMER_IOC_LEASE)
SPOT_ONE(query, SPOTTIMER_IOC_QUERY)

static inline int spot_info(int fd, struct spottimer_info *info)
{
	return ioctl(fd, SPOTTIMER_IOC_INFO, info) ? -errno : 0;
}

/* A timer as a test begins with it: one tick, @delay from now. */
static inline struct spottimer_register timer_once(__u64 key, __s64 delay)
{
	struct spottimer_register reg = {
		.key = key,
		.first = delay,
		.clock = CLOCK_MONOTONIC,
	};

	return reg;
}

/* A tick at the absolute time @first, and one every @period from there on. */
static inline struct spottimer_register timer_every(__u64 key, __s64 first,
						    __s64 period)
{
	struct spottimer_register reg = timer_once(key, first);

	reg.period = period;
	reg.flags = SPOTTIMER_REG_ABSTIME;
	return reg;
}

/* Register a timer with one tick. Returns its generation, 0 on failure. */
static inline __u64 arm_once(int fd, __u64 key, __s64 delay, __u32 flags)
{
	struct spottimer_register reg = timer_once(key, delay);

	reg.flags = flags;
	return spot_register(fd, &reg) ? 0 : reg.generation;
}

/* The same for one that repeats from now on. */
static inline __u64 arm_every(int fd, __u64 key, __s64 period, __u32 flags)
{
	struct spottimer_register reg = timer_once(key, period);

	reg.period = period;
	reg.flags = flags;
	return spot_register(fd, &reg) ? 0 : reg.generation;
}

/*
 * Register @n timers like @next, each with the key after that of the one before
 * and @step later. Returns how many could be.
 */
static inline int register_many(int fd, struct spottimer_register next, int n,
				__s64 step)
{
	/* not on the stack, which may not grow where memory is what is tested */
	static struct spottimer_register reg[1000];
	int good = 0, count, i;

	for (; n > 0; n -= count) {
		for (count = 0; count < n && count < (int)ARRAY_LEN(reg);
		     count++) {
			reg[count] = next;
			next.key++;
			next.first += step;
		}
		if (spot_batch(fd, SPOTTIMER_IOC_REGISTER, reg, count,
			       sizeof(reg[0])) != count)
			break;
		for (i = 0; i < count; i++)
			good += !reg[i].error;
	}
	return good;
}

/* The whole entry is returned, its error also if the call failed. */
static inline struct spottimer_cancel cancel(int fd, __u64 key,
					     __u64 generation, __u32 flags)
{
	struct spottimer_cancel entry = {
		.key = key,
		.generation = generation,
		.flags = flags,
	};

	entry.error = spot_cancel(fd, &entry);
	return entry;
}

static inline int complete(int fd, __u64 key, __u64 generation, __s32 result)
{
	struct spottimer_complete entry = {
		.key = key,
		.generation = generation,
		.result = result,
	};

	return spot_complete(fd, &entry);
}

static inline struct spottimer_query query(int fd, __u64 key, __u64 generation)
{
	struct spottimer_query entry = {
		.key = key,
		.generation = generation,
	};

	entry.error = spot_query(fd, &entry);
	return entry;
}

static inline int lease(int fd, __u32 op, __u64 owner, __u64 epoch,
			__s64 deadline, __u32 flags)
{
	struct spottimer_lease entry = {
		.owner = owner,
		.epoch = epoch,
		.deadline = deadline,
		.op = op,
		.flags = flags,
	};

	return spot_lease(fd, &entry);
}

static inline int lease_grant(int fd, __u64 owner, __u64 epoch,
			      __s64 deadline)
{
	return lease(fd, SPOTTIMER_LEASE_GRANT, owner, epoch, deadline, 0);
}

static inline int lease_renew(int fd, __u64 owner, __u64 epoch,
			      __s64 deadline)
{
	return lease(fd, SPOTTIMER_LEASE_RENEW, owner, epoch, deadline, 0);
}

static inline int lease_revoke(int fd, __u64 owner, __u64 epoch,
			       __u32 flags)
{
	return lease(fd, SPOTTIMER_LEASE_REVOKE, owner, epoch, 0, flags);
}

/* A generation is over if it is remembered as such, or not any more. */
static inline bool is_over(int fd, __u64 key, __u64 generation)
{
	struct spottimer_query q = query(fd, key, generation);

	return q.error ? q.error == -ENOENT || q.error == -ESTALE :
			 q.state == SPOTTIMER_ENDED;
}

static inline bool wait_state(int fd, __u64 key, __u64 generation, __u32 state)
{
	struct spottimer_query q;
	__s64 since = 0;

	do {
		q = query(fd, key, generation);
		if (q.error)
			return false;
		if (q.state == state)
			return true;
	} while (look_again(&since));
	return false;
}

/*
 * Records. The file is non-blocking in all of these.
 */

static inline bool readable_for(int fd, int timeout)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, timeout) == 1 && pfd.revents & POLLIN;
}

static inline bool readable(int fd)
{
	return readable_for(fd, 0);
}

/* One read. Returns the number of records, or an error. */
static inline int read_records(int fd, struct spottimer_record *rec, int n)
{
	ssize_t ret = read(fd, rec, n * sizeof(*rec));

	if (ret < 0)
		return -errno;
	if (!ret || ret % sizeof(*rec))
		return -EPROTO;
	return ret / sizeof(*rec);
}

/* Read until there are @n records, or none came for too long (-ETIME). */
static inline int take_all(int fd, struct spottimer_record *rec, int n)
{
	int got = 0;

	while (got < n) {
		int ret;

		if (!readable_for(fd, PATIENCE))
			return -ETIME;
		ret = read_records(fd, rec + got, n - got);
		if (ret > 0)
			got += ret;
		else if (ret != -EAGAIN)
			return ret;
	}
	return got;
}

static inline int take(int fd, struct spottimer_record *rec)
{
	int ret = take_all(fd, rec, 1);

	return ret == 1 ? 0 : ret;
}

/* True if there is nothing to read, by poll and by read, and none comes. */
static inline bool nothing_for(int fd, int timeout)
{
	struct spottimer_record rec;

	return !readable_for(fd, timeout) &&
	       read_records(fd, &rec, 1) == -EAGAIN;
}

static inline bool nothing(int fd)
{
	return nothing_for(fd, 0);
}

/* Wait until the timers with keys from 0 on are all ready. */
static inline bool wait_all_ready(int fd, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!wait_state(fd, i, 0, SPOTTIMER_READY))
			return false;
	return true;
}

/* Have @n records ready, of keys from 0 on. */
static inline bool make_ready(int fd, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (!arm_once(fd, i, 0, 0))
			return false;
	return wait_all_ready(fd, n);
}

/* The keys of some records as a bit mask; all ones where one is there twice. */
static inline __u64 keys_of(const struct spottimer_record *rec, int n)
{
	__u64 keys = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (rec[i].key >= 64 || keys & 1ULL << rec[i].key)
			return ~0ULL;
		keys |= 1ULL << rec[i].key;
	}
	return keys;
}

#define EXPECT_TICK(rec, key_, generation_, delivery, scheduled) do {	\
	const struct spottimer_record rec_ = (rec);			\
									\
	EXPECT_EQ(SPOTTIMER_REC_TICK,					\
		  rec_.flags & (SPOTTIMER_REC_TICK | SPOTTIMER_REC_END | \
				SPOTTIMER_REC_LEASE));			\
	EXPECT_EQ(key_, rec_.key);					\
	EXPECT_EQ(generation_, rec_.generation);			\
	EXPECT_EQ(delivery, rec_.delivery_index);			\
	EXPECT_EQ(scheduled, rec_.scheduled_index);			\
	EXPECT_EQ(0, rec_.result);					\
} while (0)

/*
 * Threads, processes, signals, rights, memory
 */

static inline void ignore_signal(int sig)
{
	(void)sig;
}

/* Have a signal do nothing but interrupt. */
static inline int catch_signal(int sig)
{
	struct sigaction action = { .sa_handler = ignore_signal };

	return sigaction(sig, &action, NULL);
}

/*
 * Wait until a thread or process sleeps in the system call @nr. False if it
 * has ended, or does something else for too long.
 */
static inline bool wait_asleep(pid_t tid, long nr)
{
	char path[40], line[32];
	__s64 since = 0;
	bool asleep;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	do {
		FILE *file = fopen(path, "r");

		if (!file)
			return false;
		/* while it runs, the file does not begin with a number */
		asleep = fgets(line, sizeof(line), file) && isdigit(line[0]) &&
			 strtol(line, NULL, 10) == nr;
		fclose(file);
	} while (!asleep && look_again(&since));
	return asleep;
}

/* Timers belong to the CPU that registers them. */
static inline int stay_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* Should the test fail, its children are not to hold files any longer. */
static inline void die_with_parent(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline pid_t fork_with_us(void)
{
	pid_t pid = fork();

	if (!pid)
		die_with_parent();
	return pid;
}

/* Have no capability but those in @mask. */
static inline int have_only(__u32 mask)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {
		{ .effective = mask, .permitted = mask },
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

/* Hand a file to another process, or to nobody if it is never received. */
static inline int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static inline int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/*
 * Two pages, of which the second one is as @prot says. Returns the border
 * between them.
 */
static inline char *map_border(int prot)
{
	long page = sysconf(_SC_PAGESIZE);
	char *base = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED || mprotect(base + page, page, prot))
		return NULL;
	return base + page;
}

/*
 * Numbers in files: parameters, counters, what the kernel tells
 */

static inline int write_file(const char *path, const char *text)
{
	ssize_t len = strlen(text);
	int fd = open(path, O_WRONLY | O_TRUNC), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, text, len) == len ? 0 : -errno;
	close(fd);
	return ret;
}

static inline int write_number(const char *path, long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", value);
	return write_file(path, text);
}

/*
 * The number behind the word @name at the beginning of a line, or with no name
 * that with which the file begins; -1 if there is none.
 */
static inline long long file_number(const char *path, const char *name)
{
	size_t len = strlen(name);
	long long value = -1;
	char line[1024];
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file)) {
		size_t gap;

		if (strncmp(line, name, len))
			continue;
		gap = strspn(line + len, ": \t");
		if ((gap || !len) &&
		    sscanf(line + len + gap, "%lld", &value) == 1)
			break;
	}
	if (file)
		fclose(file);
	return value;
}

#define PARAM_PATH "/sys/module/spottimer/parameters/"

static inline long long read_param(const char *name)
{
	char path[80];

	snprintf(path, sizeof(path), PARAM_PATH "%s", name);
	return file_number(path, "");
}

static inline int write_param(const char *name, long long value)
{
	char path[80];

	snprintf(path, sizeof(path), PARAM_PATH "%s", name);
	return write_number(path, value);
}

/* A number in the fdinfo of a file. */
static inline long long read_fdinfo(int fd, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	return file_number(path, name);
}

/* A counter of the engine, over all CPUs. */
static inline long long counter(const char *name)
{
	return file_number("/sys/kernel/debug/spottimer/counters", name);
}

/* Wait for the number of hrtimers in use, over all CPUs. */
static inline bool wait_hrtimers(long long n)
{
	__s64 since = 0;

	while (counter("hrtimers") != n)
		if (!look_again(&since))
			return false;
	return true;
}

/* References to the module: one for each context. */
static inline long long contexts(void)
{
	return file_number("/sys/module/spottimer/refcnt", "");
}

/* kB of slab memory that the kernel uses */
static inline long slab_kb(void)
{
	return file_number("/proc/meminfo", "Slab");
}

static inline bool set_online(int cpu, bool online)
{
	char path[60];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online",
		 cpu);
	return !write_number(path, online);
}

/*
 * A number from the environment: init hands on what it was told by the kernel's
 * command line.
 */
static inline long long number_from_env(const char *name, long long otherwise)
{
	const char *value = getenv(name);

	return value && atoll(value) > 0 ? atoll(value) : otherwise;
}

/*
 * A kernel that looks for mistakes takes too long for the large numbers, and
 * keeps what was freed for a while, to see who uses it still: there they are
 * divided by this.
 */
static inline int scale(void)
{
	static int value;

	if (!value)
		value = number_from_env("SPOT_SCALE", 1);
	return value;
}

/*
 * The usual fixture: one open, non-blocking file.
 */

FIXTURE(ctx) {
	int fd;
};

FIXTURE_SETUP(ctx)
{
	self->fd = spot_open(O_NONBLOCK);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(ctx)
{
	close(self->fd);
}

#endif /* SPOTTIMER_TEST_H */
