/* SPDX-License-Identifier: BSD-2-Clause */
/* The owner of a store: a wrong one is reported before a file is refused. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "rxvol/volumes.h"

#define NAME_ROOM 64

static const char *name_user(uid_t uid, char name[NAME_ROOM])
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(name, NAME_ROOM, "%s", user->pw_name);
	else
		snprintf(name, NAME_ROOM, "user %u", (unsigned)uid);
	return name;
}

/* The first file that belongs to somebody else than the directory; NULL: there is none. */
static const char *find_foreign_file(int directory, uid_t owner, uid_t *other)
{
	static const char *const files[] = {"FORMAT",  "lock",	      "meta",
					    "meta/db", "meta/db-wal", "files"};
	struct stat st;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (fstatat(directory, files[i], &st, AT_SYMLINK_NOFOLLOW) || st.st_uid == owner)
			continue;
		*other = st.st_uid;
		return files[i];
	}
	return NULL;
}

int rxvol_check_owner(const char *store, uid_t owner)
{
	int directory = open(store, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_ROOM], second[NAME_ROOM];
	const char *file = NULL;
	uid_t other;

	if (directory < 0)
		return 0;
	if (geteuid() && geteuid() != owner &&
	    (faccessat(directory, "FORMAT", F_OK, AT_EACCESS) == 0 || errno == EACCES)) {
		tools_error("%s belongs to %s: give the command as that user, or as root", store,
			    name_user(owner, name));
		close(directory);
		return -1;
	}
	if (faccessat(directory, "FORMAT", F_OK, AT_EACCESS) == 0)
		file = find_foreign_file(directory, owner, &other);
	close(directory);
	if (!file)
		return 0;
	return tools_fail(
		-1,
		"%s belongs to %s, but %s/%s to %s: all of it must belong to the user of the "
		"server; see chown -R",
		store, name_user(owner, name), store, file, name_user(other, second));
}
