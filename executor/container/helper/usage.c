/*
 * What a run used, as the control groups of the container counted it. Where the engine shows them (read-only) they are below
 * /sys/fs/cgroup, one hierarchy (v2) or one per controller (v1). Read when everything but PID 1 is dead, and before the
 * engine removes them.
 */
#include "usage.h"
#include "wire.h"

#include <linux/resource.h>

#define GROUP "/sys/fs/cgroup/"

/* read_number finds the number behind key at the beginning of a line of a file, or the file's only number for an empty key;
 * false when there is none. */
static int read_number(const char *path, const char *key, u64 *value)
{
	static char text[4096];
	long fd = sys_open(AT_ROOT, path, O_RDONLY, 0);
	if (fd < 0)
		return 0;
	long n = sys_read((int)fd, text, sizeof text - 1);
	sys_close((int)fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	for (const char *line = text; *line;) {
		const char *k = key, *p = line;
		while (*k && *p == *k)
			p++, k++;
		if (*k == 0 && *p >= '0' && *p <= '9') {
			*value = 0;
			for (; *p >= '0' && *p <= '9'; p++)
				*value = *value * 10 + (u64)(*p - '0');
			return 1;
		}
		while (*line && *line != '\n')
			line++;
		if (*line)
			line++;
	}
	return 0;
}

u64 used_cpu(void)
{
	u64 value;
	if (read_number(GROUP "cpu.stat", "usage_usec ", &value))
		return value;
	if (read_number(GROUP "cpuacct/cpuacct.usage", "", &value) || read_number(GROUP "cpu,cpuacct/cpuacct.usage", "", &value))
		return value / 1000;
	return 0;
}

/* reaped_cpu is that of every process PID 1 ever waited for, in microseconds. */
static u64 reaped_cpu(void)
{
	struct rusage usage;
	if (SYS(getrusage, RUSAGE_CHILDREN, &usage, 0, 0, 0, 0))
		return 0;
	return ((u64)usage.ru_utime.tv_sec + (u64)usage.ru_stime.tv_sec) * 1000000 +
	       (u64)usage.ru_utime.tv_usec + (u64)usage.ru_stime.tv_usec;
}

void send_usage(void)
{
	u64 value = used_cpu();
	send_frame(FRAME_USAGE, USAGE_CPU, value ? value : reaped_cpu(), 0, 0);
	if (read_number(GROUP "memory.peak", "", &value) || read_number(GROUP "memory/memory.max_usage_in_bytes", "", &value))
		send_frame(FRAME_USAGE, USAGE_MEMORY_PEAK, value, 0, 0);
	if (read_number(GROUP "memory.events", "oom_kill ", &value) || read_number(GROUP "memory/memory.oom_control", "oom_kill ", &value))
		send_frame(FRAME_USAGE, USAGE_OOM_KILLS, value, 0, 0);
	if (read_number(GROUP "pids.events", "max ", &value) || read_number(GROUP "pids/pids.events", "max ", &value))
		send_frame(FRAME_USAGE, USAGE_PROCESS_LIMIT, value, 0, 0);
}
