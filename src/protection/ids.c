/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file beside the database with the last ids that were given out. ACLs outlive a database that is lost or restored from an old
 * backup: the ids in them must not be given to others.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protection/private.h"

#define SUFFIX "-ids"

struct last {
	int64_t user, group;
};

static char *make_ids_path(const struct prot *prot)
{
	char *path;

	return asprintf(&path, "%s" SUFFIX, prot->path) < 0 ? NULL : path;
}

static int query_last(struct prot *prot, struct last *last, char *message)
{
	*last = (struct last){0};
	if (prot_query(prot, "SELECT user FROM last", NULL, 0, NULL, &last->user) ||
	    prot_query(prot, "SELECT grp FROM last", NULL, 0, NULL, &last->group))
		return prot_database_error(prot, "be read", message);
	return 0;
}

static bool are_ids_in_range(const struct last *last)
{
	return last->user >= 0 && last->user <= INT32_MAX && last->group <= 0 &&
	       last->group >= -INT32_MAX;
}

/* 0: *last is what the file says; -ENOENT; else it cannot be read. */
static int read_ids_file(const char *path, struct last *last)
{
	FILE *f = fopen(path, "re");
	long long user = -1, group = 1;
	int rc;

	if (!f)
		return -errno;
	rc = fscanf(f, "user %lld group %lld", &user, &group) == 2 ? 0 : -EBADMSG;
	fclose(f);
	*last = (struct last){user, group};
	return rc || !are_ids_in_range(last) ? -EBADMSG : 0;
}

/* The text is on stable storage, in a file of the owner of the database. */
static int write_ids(const struct prot *prot, int fd, const struct last *last)
{
	struct stat st;

	if (geteuid() == 0 && (stat(prot->path, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0))
		return -errno;
	if (dprintf(fd, "user %lld group %lld\n", (long long)last->user, (long long)last->group) <
	    0)
		return -errno;
	return fsync(fd) < 0 ? -errno : 0;
}

static int replace_ids_file(const char *temporary, const char *path)
{
	char *slash, *folder;
	int fd, rc;

	if (rename(temporary, path) < 0)
		return -errno;
	folder = strdup(path);
	if (!folder)
		return -ENOMEM;
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	free(folder);
	return rc;
}

/* One process at a time does this. */
static int write_ids_file(const struct prot *prot, const char *path, const struct last *last)
{
	char *temporary;
	int fd, rc;

	if (asprintf(&temporary, "%s.new", path) < 0)
		return -ENOMEM;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = -errno;
		goto out;
	}
	rc = write_ids(prot, fd, last);
	close(fd);
	if (!rc)
		rc = replace_ids_file(temporary, path);
	if (rc)
		unlink(temporary);
out:
	free(temporary);
	return rc;
}

/* A file that cannot be read may have later ids, and stays; a damaged one says nothing. */
static int raise_file(const struct prot *prot, const char *path, const struct last *now)
{
	struct last last;
	int rc = read_ids_file(path, &last);

	if (rc ? rc != -ENOENT && rc != -EBADMSG
	       : now->user <= last.user && now->group >= last.group)
		return rc;
	return write_ids_file(prot, path, now);
}

/* The last ids of the database, which no other process changes meanwhile, unless the file has them or later ones. */
static int update_file(struct prot *prot, const char *path)
{
	char message[PROT_MESSAGE_MAX];
	struct last now;
	int rc = 0;

	if (prot_run(prot, "BEGIN IMMEDIATE"))
		return (sqlite3_errcode(prot->db) & 0xff) == SQLITE_READONLY ? -EACCES : -EBUSY;
	if (query_last(prot, &now, message))
		rc = -EIO;
	else if (now.user == 0 && now.group >= PROT_BACKUP)
		; /* none was given out */
	else if (are_ids_in_range(&now))
		rc = raise_file(prot, path, &now);
	prot_run(prot, "ROLLBACK");
	return rc;
}

void prot_ids_write(struct prot *prot)
{
	char line[PROT_MESSAGE_MAX], *path = make_ids_path(prot);
	int rc = path ? update_file(prot, path) : -ENOMEM;

	if (rc && prot->options.warn) {
		snprintf(
			line, sizeof(line),
			"%.250s" SUFFIX
			" cannot be kept: %s; it has the ids that were given out, so that none is given twice "
			"if the database is lost",
			prot->path, strerror(-rc));
		prot->options.warn(prot->options.arg, line);
	}
	free(path);
}

int prot_last_ids(struct prot *prot, int32_t *user, int32_t *group, char *message)
{
	struct last last;
	int rc;

	pthread_mutex_lock(&prot->db_lock);
	rc = query_last(prot, &last, message);
	pthread_mutex_unlock(&prot->db_lock);
	*user = (int32_t)last.user;
	*group = (int32_t)last.group;
	return rc;
}

/* In a transaction. */
static int raise_last(struct prot *prot, int64_t user, int64_t group, bool *raised, char *message)
{
	const int64_t parameters[] = {user, group};
	struct last now;
	int rc = query_last(prot, &now, message);

	*raised = !rc && (user > now.user || group < now.group);
	if (*raised && prot_query(prot, "UPDATE last SET user = max(user, ?), grp = min(grp, ?)",
				  parameters, 2, NULL, NULL))
		rc = prot_database_error(prot, "be changed", message);
	return rc;
}

int prot_keep_ids(struct prot *prot, int32_t user, int32_t group, bool *raised, char *message)
{
	int rc;

	*raised = false;
	rc = prot_begin(prot, message);
	if (rc)
		return rc;
	rc = raise_last(prot, user, group, raised, message);
	if (!rc)
		return prot_commit(prot, message);
	prot_rollback(prot);
	return rc;
}

static void warn_damaged(const struct prot *prot)
{
	char line[PROT_MESSAGE_MAX];

	if (!prot->options.warn)
		return;
	snprintf(
		line, sizeof(line),
		"%.250s" SUFFIX
		" is damaged, and made again from the database; if that is an older copy, ids that ACLs may name are given out "
		"again: restore the latest backup",
		prot->path);
	prot->options.warn(prot->options.arg, line);
}

int prot_ids_compare(struct prot *prot, char *message)
{
	char *path = make_ids_path(prot);
	struct last now, last;
	bool raised = false;
	int error = path ? read_ids_file(path, &last) : -ENOMEM,
	    rc = query_last(prot, &now, message);

	if (error == -EBADMSG)
		warn_damaged(prot);
	/* A damaged database is found when it is loaded. */
	if (rc)
		error = rc = 0;
	else if (!error && are_ids_in_range(&now) &&
		 (last.user > now.user || last.group < now.group))
		rc = prot_keep_ids(prot, (int32_t)last.user, (int32_t)last.group, &raised, message);
	if (!rc)
		prot_ids_write(prot);
	if (raised && prot->options.warn) {
		char line[PROT_MESSAGE_MAX + 64];

		snprintf(
			line, sizeof(line),
			"%.250s is new or an older copy: users with ids up to %d and groups with ids down to %d were there, which ACLs may name; "
			"these ids are not given out again; restore the latest backup",
			prot->path, (int)last.user, (int)last.group);
		prot->options.warn(prot->options.arg, line);
	}
	free(path);
	return rc;
}
