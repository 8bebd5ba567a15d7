/*
 * What a run may do: its privileges and its processors.
 */
#include "identity.h"

/* Nothing is left in it where the engine did as it was told. */
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

long place(u32 count, u32 first)
{
	u64 allowed[16] = {0}, mask[16] = {0};
	u32 n = 0, seen = 0;
	long err = SYS(sched_getaffinity, 0, sizeof allowed, allowed, 0, 0, 0);
	if (err < 0)
		return err;
	for (u32 i = 0; i < 1024; i++)
		n += allowed[i / 64] >> i % 64 & 1;
	if (count == 0 || count >= n)
		return 0;
	for (u32 i = 0; i < 1024; i++) {
		if (!(allowed[i / 64] >> i % 64 & 1))
			continue;
		if ((seen++ + n - first % n) % n < count)
			mask[i / 64] |= 1ULL << i % 64;
	}
	return SYS(sched_setaffinity, 0, sizeof mask, mask, 0, 0, 0);
}
