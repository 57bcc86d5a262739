/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that a unit's ProtectSystem=, ProtectHome= or PrivateTmp= takes away fails like a disk that is mounted
 * read-only, a wrong mode or a missing directory, and its administrator would look there.
 */
#include "fileserver/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileserver/base/base.h"

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == 0 || path[n] == '/');
}

/* Under ProtectHome=yes each of these is an empty directory that nobody may enter. */
static bool is_hidden_home(const char *path)
{
	static const char *const homes[] = {"/home", "/root", "/run/user"};
	struct stat st;

	for (size_t i = 0; i < sizeof(homes) / sizeof(homes[0]); i++)
		if (is_below(path, homes[i]))
			return stat(homes[i], &st) == 0 && (st.st_mode & 07777) == 0;
	return false;
}

static bool is_missing_in_tmp(const char *path)
{
	return (is_below(path, "/tmp") || is_below(path, "/var/tmp")) && access(path, F_OK) < 0 &&
	       errno == ENOENT;
}

/* Whether the path, or as much of it as exists, is on a mount that is read-only for this process. */
static bool is_read_only(const char *path)
{
	char part[PATH_MAX];
	char *slash;

	if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part))
		return false;
	while (access(part, W_OK) < 0) {
		if (errno != ENOENT)
			return errno == EROFS;
		slash = strrchr(part, '/');
		if (!slash || slash == part)
			return false;
		*slash = 0;
	}
	return false;
}

int fsd_sandbox_check(const char *option, const char *path, bool writes, char *message)
{
	if (!path || !getenv("NOTIFY_SOCKET"))
		return 0;
	if (is_hidden_home(path))
		snprintf(message, FSD_MESSAGE_MAX,
			 "%s %.150s: the service's unit hides home directories: systemctl edit "
			 "rxfsd, [Service] ProtectHome=%s%s%.100s",
			 option, path, writes ? "no" : "read-only",
			 writes ? " ReadWritePaths=" : "", writes ? path : "");
	else if (!writes && is_missing_in_tmp(path))
		snprintf(message, FSD_MESSAGE_MAX,
			 "%s %.200s: does not exist; the service's unit may give it a /tmp of its "
			 "own: choose another place, or systemctl edit rxfsd, [Service] "
			 "PrivateTmp=no",
			 option, path);
	else if (writes && is_read_only(path))
		snprintf(message, FSD_MESSAGE_MAX,
			 "%s %.130s: read-only for this service; if its disk is mounted for "
			 "writing, its unit forbids it: systemctl edit rxfsd, [Service] "
			 "ReadWritePaths=%.130s",
			 option, path, path);
	else
		return 0;
	return -1;
}
