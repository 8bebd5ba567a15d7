#ifndef SALLYPORT_LANDLOCK_H
#define SALLYPORT_LANDLOCK_H

/* landlock_abi is the version of Landlock that this kernel speaks, 0 when it has none, -errno when it does not say. */
long landlock_abi(void);

/* confine applies the Landlock policy to the calling process and all it will start. 0 also when the kernel has no Landlock
 * that could be used; -errno when it has and the policy could not be applied. */
long confine(void);

#endif
