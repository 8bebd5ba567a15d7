/*
 * System calls without a C library: the helper must not depend on what is in an image, and must start fast.
 * Every wrapper returns the kernel's answer, so a negative value is -errno.
 */
#ifndef SALLYPORT_CONTAINER_SYS_H
#define SALLYPORT_CONTAINER_SYS_H

#include <asm/fcntl.h>
#include <asm/poll.h>
#include <asm/signal.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/signalfd.h>
#include <linux/stat.h>

#include "protocol.h"

#if defined(__x86_64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "add the system call convention of this architecture"
#endif

#define SYS(name, a, b, c, d, e, f) \
	sys6(__NR_##name, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#define AT_ROOT AT_FDCWD /* for absolute paths */

static inline void sys_exit(int code)
{
	for (;;)
		SYS(exit_group, code, 0, 0, 0, 0, 0);
}
static inline long sys_open(int dir, const char *path, int flags, int mode)
{
	return SYS(openat, dir, path, flags | O_CLOEXEC, mode, 0, 0);
}
static inline long sys_close(int fd) { return SYS(close, fd, 0, 0, 0, 0, 0); }
static inline long sys_read(int fd, void *p, u64 n) { return SYS(read, fd, p, n, 0, 0, 0); }
static inline long sys_write(int fd, const void *p, u64 n) { return SYS(write, fd, p, n, 0, 0, 0); }
static inline long sys_mkdir(int dir, const char *path, int mode) { return SYS(mkdirat, dir, path, mode, 0, 0, 0); }
static inline long sys_statx(int dir, const char *path, int flags, struct statx *st)
{
	return SYS(statx, dir, path, flags, STATX_BASIC_STATS, st, 0);
}
static inline long sys_prctl(int op, long a) { return SYS(prctl, op, a, 0, 0, 0, 0); }
static inline long sys_kill(int pid, int signal) { return SYS(kill, pid, signal, 0, 0, 0, 0); }
#define WAIT_NO_HANG 1
#define WAIT_ALL 0x40000000 /* children made by clone too, whatever signal they end with */
static inline long sys_wait(int pid, int *status, int options) { return SYS(wait4, pid, status, options | WAIT_ALL, 0, 0, 0); }
static inline long sys_fork(void) { return SYS(clone, SIGCHLD, 0, 0, 0, 0, 0); }

static inline u64 str_len(const char *s)
{
	u64 n = 0;
	while (s[n])
		n++;
	return n;
}

/* write_all and read_all return 0, or -errno; read_all returns -EPIPE when the other end closed early. */
long write_all(int fd, const void *data, u64 n);
long read_all(int fd, void *data, u64 n);

void *memset(void *to, int value, unsigned long n);
void *memcpy(void *to, const void *from, unsigned long n);

#endif
