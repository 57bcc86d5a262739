/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A path that a unit's ProtectSystem=, ProtectHome= or PrivateTmp= takes away fails like a disk that is mounted
 * read-only, a wrong mode or a missing directory, and its administrator would look there.
 */
#include "fileserver/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
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

/* The directory that is written to: the path itself, or that of the new file. */
static void find_directory(const char *path, char directory[PATH_MAX])
{
	struct stat st;
	char *slash;

	snprintf(directory, PATH_MAX, "%s", path);
	slash = strrchr(directory, '/');
	if (slash && slash != directory && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		*slash = 0;
}

/* Whether the directory, or as much of its path as exists, is on a mount that is read-only for this process. */
static bool is_read_only(const char *directory)
{
	struct statvfs file_system;
	char part[PATH_MAX];
	char *slash;

	snprintf(part, sizeof(part), "%s", directory);
	while (statvfs(part, &file_system) < 0) {
		slash = strrchr(part, '/');
		if (errno != ENOENT || !slash || slash == part)
			return false;
		*slash = 0;
	}
	return file_system.f_flag & ST_RDONLY;
}

int fsd_sandbox_check(const char *option, const char *path, bool writes, char *message)
{
	char directory[PATH_MAX];

	if (!path || !getenv("NOTIFY_SOCKET") || strlen(path) >= sizeof(directory))
		return 0;
	find_directory(path, directory);
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
	else if (writes && is_read_only(directory))
		snprintf(message, FSD_MESSAGE_MAX,
			 "%s %.130s: read-only for this service; if its disk is mounted for "
			 "writing, its unit forbids it: systemctl edit rxfsd, [Service] "
			 "ReadWritePaths=%.130s",
			 option, path, directory);
	else
		return 0;
	return -1;
}
