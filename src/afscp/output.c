/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands print. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "program/message.h"
#include "program/number.h"
#include "afscp/output.h"

void print_name(const char *name)
{
	char text[PATH_MAX], *whole;

	if (!isatty(STDOUT_FILENO)) {
		fputs(name, stdout);
		return;
	}
	whole = strdup(name);
	snprintf(text, sizeof(text), "%s", name);
	fputs(tools_harmless(whole ? whole : text), stdout);
	free(whole);
}

const char *format_mode(char text[11], const struct rxafs_attributes *a)
{
	static const char letters[] = "rwxrwxrwx";

	text[0] = a->mount_point	       ? 'm'
		  : a->kind == RXAFS_DIRECTORY ? 'd'
		  : a->kind == RXAFS_SYMLINK   ? 'l'
					       : '-';
	for (int i = 0; i < 9; i++)
		text[1 + i] = mode_of(a) & (0400u >> i) ? letters[i] : '-';
	text[10] = 0;
	return text;
}

const char *format_mtime(char *text, size_t size, int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!localtime_r(&t, &tm) || strftime(text, size, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(text, size, "%lld", (long long)seconds);
	return text;
}

const char *format_kib(const struct run *run, char *text, size_t size, uint64_t kib)
{
	if (run->set.human)
		tools_format_size(text, size, kib * 1024);
	else
		snprintf(text, size, "%llu", (unsigned long long)kib);
	return text;
}

const char *name_of_kind(const struct rxafs_attributes *a)
{
	return a->mount_point		    ? "mount point"
	       : a->kind == RXAFS_DIRECTORY ? "directory"
	       : a->kind == RXAFS_SYMLINK   ? "symbolic link"
	       : a->kind		    ? "file"
					    : "unknown";
}

/* ---- JSON ---- */

static int dump_line(json_t *object)
{
	/* A terminal would take orders from control characters beyond ASCII. */
	int rc = json_dumpf(object, stdout, isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0);

	if (rc == 0 && putchar('\n') == EOF)
		rc = -1;
	json_decref(object);
	if (rc < 0)
		tools_note_output();
	return rc;
}

int print_json(struct run *run, json_t *object)
{
	json_t *errors, *text;
	size_t i;
	int rc = 0;

	pthread_mutex_lock(&run->list_lock);
	errors = run->errors;
	run->errors = json_array();
	pthread_mutex_unlock(&run->list_lock);
	json_array_foreach(errors, i, text) rc |= dump_line(json_pack("{s:O}", "error", text));
	json_decref(errors);
	if (object)
		rc |= dump_line(object);
	return rc < 0 ? -1 : 0;
}

void pack_bytes(json_t *object, const char *key, const char *text)
{
	json_t *plain = json_string(text);
	char name[64], *hex;

	if (plain) {
		json_object_set_new(object, key, plain);
		return;
	}
	json_object_set_new(object, key, tools_json_text(text));
	hex = malloc(2 * strlen(text) + 1);
	if (!hex)
		return;
	for (size_t i = 0; text[i]; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
	snprintf(name, sizeof(name), "%s_hex", key);
	json_object_set_new(object, name, json_string(hex));
	free(hex);
}

json_t *pack_attributes(const struct rxafs_attributes *a)
{
	const struct stat *s = &a->stat;

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:I, s:I}", "type",
			 name_of_kind(a), "volume_id", (json_int_t)a->fid.volume, "vnode",
			 (json_int_t)a->fid.vnode, "unique", (json_int_t)a->fid.unique, "length",
			 (json_int_t)s->st_size, "mode", (int)mode_of(a), "links",
			 (json_int_t)s->st_nlink, "owner", (json_int_t)s->st_uid, "group",
			 (json_int_t)s->st_gid, "client_mtime", (json_int_t)s->st_mtim.tv_sec);
}
