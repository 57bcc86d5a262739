/* SPDX-License-Identifier: BSD-2-Clause */
/* A protection database in a folder of its own. */
#include "tests/protection/database.h"

void database_open(struct database *d, const struct prot_options *options)
{
	struct prot_options o = options ? *options : (struct prot_options){0};

	*d = (struct database){.folder = test_folder()};
	ck_assert_int_gt(asprintf(&d->file, "%s/" PROT_FILE, d->folder), 0);
	o.path = d->folder;
	o.create = true;
	ck_assert_msg(prot_open(&o, &d->prot, d->message) == 0, "%s", d->message);
}

unsigned database_warnings;

void database_warn(void *arg, const char *line)
{
	(void)arg, (void)line;
	database_warnings++;
}

void database_shut(struct database *d)
{
	prot_close(d->prot);
	d->prot = NULL;
}

void database_reopen(struct database *d)
{
	const struct prot_options o = {.path = d->file};

	database_shut(d);
	ck_assert_msg(prot_open(&o, &d->prot, d->message) == 0, "%s", d->message);
}

void database_close(struct database *d)
{
	char *command = NULL;

	database_shut(d);
	/* The last one to close leaves nothing but the file, and that of the last ids. */
	ck_assert_int_eq(unlink(d->file), 0);
	ck_assert_int_gt(asprintf(&command, "rm -f '%s'-ids*; ls -A '%s'; rmdir '%s'", d->file,
				  d->folder, d->folder),
			 0);
	ck_assert_int_eq(system(command), 0);
	free(command);
	free(d->file);
	free(d->folder);
}

int32_t database_user(struct database *d, const char *name, int32_t id)
{
	int32_t given = 0;

	ck_assert_msg(prot_add_user(d->prot, name, id, &given, d->message) == 0, "%s", d->message);
	return given;
}

int32_t database_group(struct database *d, const char *name, int32_t id, int32_t owner)
{
	int32_t given = 0;

	ck_assert_msg(prot_add_group(d->prot, name, id, owner, &given, d->message) == 0, "%s",
		      d->message);
	return given;
}

static const char *text_of(const int32_t *list, size_t count)
{
	static char text[4][512];
	static unsigned turn;
	char *at = text[turn++ % 4], *begin = at;

	*at = 0;
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, sizeof(text[0]) - (size_t)(at - begin), "%s%d", i ? " " : "",
			       list[i]);
	return begin;
}

const char *database_cps(struct database *d, int32_t id)
{
	const struct prot_view *view = prot_view_get(d->prot);
	int32_t list[64];
	size_t count = prot_cps(view, id, list, 64);

	prot_view_put(view);
	ck_assert_uint_le(count, 64);
	return text_of(list, count);
}

const char *database_host_cps(struct database *d, uint32_t address)
{
	const struct prot_view *view = prot_view_get(d->prot);
	int32_t list[64];
	size_t count = prot_host_cps(view, address, list, 64);

	prot_view_put(view);
	ck_assert_uint_le(count, 64);
	return text_of(list, count);
}

const char *database_owned(struct database *d, int32_t id)
{
	const struct prot_view *view = prot_view_get(d->prot);
	int32_t list[64];
	size_t count = prot_owned(view, id, list, 64);

	prot_view_put(view);
	ck_assert_uint_le(count, 64);
	return text_of(list, count);
}

const char *database_members(struct database *d, int32_t id)
{
	const struct prot_view *view = prot_view_get(d->prot);
	const struct prot_entry *entry = prot_by_id(view, id);
	const char *text = entry ? text_of(entry->members, entry->count) : "none";

	prot_view_put(view);
	return text;
}
