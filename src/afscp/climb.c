/* SPDX-License-Identifier: BSD-2-Clause */
/* Deep trees with few descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/climb.h"

bool climb_down(int *fd, unsigned depth, struct stat *left)
{
	if (depth <= CLIMB_OPEN || fstat(*fd, left) < 0)
		return false;
	close(*fd);
	*fd = -1;
	return true;
}

int climb_up(int *fd, int below, const struct stat *left, const char *label)
{
	struct stat now;

	/* A folder further down has been told. */
	if (below < 0)
		return -1;
	*fd = openat(below, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 && fstat(*fd, &now) == 0 && now.st_dev == left->st_dev &&
	    now.st_ino == left->st_ino)
		return 0;
	tools_error("%s: cannot go back from it: %s", label,
		    *fd < 0 ? strerror(errno) : "somebody has moved it meanwhile");
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -1;
}
