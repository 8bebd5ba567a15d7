/*
 * Who a run is: its uid, its privileges and its processors.
 */
#include "identity.h"

/* drop_bounding needs CAP_SETPCAP, which the change of the uid takes away. */
static long drop_bounding(void)
{
	for (int cap = 0; cap < 64; cap++) {
		if (sys_prctl(PR_CAPBSET_READ, cap) != 1)
			continue;
		long err = sys_prctl(PR_CAPBSET_DROP, cap);
		if (err)
			return err;
	}
	return 0;
}

long drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
	long err = drop_bounding();
	if (err)
		return err;
	err = sys_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL);
	if (err)
		return err;
	return SYS(capset, &header, none, 0, 0, 0, 0);
}

long become(u32 id)
{
	static const char *const owned[] = {PATH_SKILL, PATH_OUTPUT_DIR, PATH_HOME};
	long err;
	if (id == 0)
		return 0;
	for (u32 i = 0; i < sizeof owned / sizeof *owned; i++) {
		err = SYS(fchownat, AT_ROOT, owned[i], id, id, AT_SYMLINK_NOFOLLOW, 0);
		if (err)
			return err;
	}
	if ((err = drop_bounding()) || (err = SYS(setgroups, 0, 0, 0, 0, 0, 0)) ||
	    (err = SYS(setresgid, id, id, id, 0, 0, 0)) || (err = SYS(setresuid, id, id, id, 0, 0, 0)) ||
	    (err = drop_capabilities()))
		return err;
	/* Never believed, always tried: a way back to root would be a way out. */
	if (SYS(setresuid, 0, 0, 0, 0, 0, 0) == 0 || SYS(setresgid, 0, 0, 0, 0, 0, 0) == 0)
		return -EPERM;
	/* A new uid makes the kernel forget both. The supervisor's end of the control pipe is watched in any case. */
	err = sys_prctl(PR_SET_PDEATHSIG, SIGKILL);
	return err ? err : sys_prctl(PR_SET_DUMPABLE, 0);
}

long place(const u64 *mask, u32 words)
{
	u64 any = 0;
	for (u32 i = 0; i < words; i++)
		any |= mask[i];
	return any ? SYS(sched_setaffinity, 0, words * sizeof *mask, mask, 0, 0, 0) : 0;
}
