#ifndef SALLYPORT_IDENTITY_H
#define SALLYPORT_IDENTITY_H

#include "sys.h"

/* drop_capabilities empties every capability set of the caller, the bounding set first; 0 or -errno. */
long drop_capabilities(void);

/* place restricts the caller, and all it will start, to count of the CPUs that it may use, beginning with the one at place
 * first, counted round; 0 or -errno. A count of 0, or of more than there are, changes nothing. */
long place(u32 count, u32 first);

#endif
