#ifndef SALLYPORT_FILES_H
#define SALLYPORT_FILES_H

#include "sys.h"

/* stage reads the files of the run from the control stream and writes them to where they belong; 0 or -errno. */
long stage(u32 count);

/* collect streams SKILL_OUTPUT and the artifacts, then returns 1 when something was left out unnamed, else 0. Every
 * other process of the container must be dead: nothing may change under it. */
u32 collect(const struct config_header *config);

#endif
