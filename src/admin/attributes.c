/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners, modes and access lists of an exported tree, in a file of its own. */
#include "admin/attributes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- writing -- */

FILE *admin_attributes_create(int directory)
{
	FILE *file;
	int fd;

	unlinkat(directory, ADMIN_ATTRIBUTES_NEW, 0);
	fd = openat(directory, ADMIN_ATTRIBUTES_NEW,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

int admin_attributes_close(FILE *file, int directory)
{
	bool failed = fflush(file) || fsync(fileno(file)), closed = !fclose(file);

	if (failed || !closed ||
	    renameat(directory, ADMIN_ATTRIBUTES_NEW, directory, ADMIN_ATTRIBUTES) < 0)
		return -errno;
	return 0;
}

static json_t *pack_entries(const struct store_ace *entry, unsigned count)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			list, json_pack("[i, I]", (int)entry[i].id, (json_int_t)entry[i].rights));
	return list;
}

int admin_attributes_write(FILE *file, const char *path, const struct store_vnode *vnode)
{
	char *text = admin_text(path);
	json_t *line =
		text ? json_pack("{s:s, s:i, s:I, s:I}", "path", text, "owner", (int)vnode->owner,
				 "group", (json_int_t)vnode->group, "mode", (json_int_t)vnode->mode)
		     : NULL;
	int rc = -1;

	if (line && vnode->kind == STORE_DIR)
		json_object_set_new(line, "acl",
				    json_pack("{s:o, s:o}", "positive",
					      pack_entries(vnode->acl.entry, vnode->acl.positive),
					      "negative",
					      pack_entries(vnode->acl.entry + vnode->acl.positive,
							   vnode->acl.negative)));
	if (line && !json_dumpf(line, file, JSON_COMPACT) && fputc('\n', file) != EOF)
		rc = 0;
	else if (!line)
		errno = ENOMEM;
	json_decref(line);
	free(text);
	return rc;
}

/* -- reading -- */

struct admin_attributes {
	void *tree; /* of struct admin_attribute, by path */
};

static int compare_attributes(const void *a, const void *b)
{
	return strcmp(((const struct admin_attribute *)a)->path,
		      ((const struct admin_attribute *)b)->path);
}

static void free_attribute(void *item)
{
	struct admin_attribute *attribute = item;

	free((char *)(uintptr_t)attribute->path);
	free(attribute);
}

/* A number of a member within a range. */
static bool take_integer(const json_t *value, json_int_t least, json_int_t most, json_int_t *out)
{
	*out = json_integer_value(value);
	return json_is_integer(value) && *out >= least && *out <= most;
}

static bool take_entries(const json_t *list, bool negative, struct store_acl *acl)
{
	json_int_t id, rights;
	const json_t *pair;
	size_t i;

	json_array_foreach(
		(json_t *)list, i,
		pair) if (!json_is_array(pair) || json_array_size(pair) != 2 ||
			  !take_integer(json_array_get(pair, 0), INT32_MIN, INT32_MAX, &id) ||
			  !take_integer(json_array_get(pair, 1), 0, UINT32_MAX, &rights) ||
			  store_acl_add(acl, negative, (int32_t)id, (uint32_t)rights)) return false;
	return true;
}

static bool take_attribute(const json_t *line, struct admin_attribute *attribute)
{
	const char *path = json_string_value(json_object_get(line, "path"));
	const json_t *acl = json_object_get(line, "acl");
	json_int_t owner, group, mode;

	if (!path || !take_integer(json_object_get(line, "owner"), INT32_MIN, INT32_MAX, &owner) ||
	    !take_integer(json_object_get(line, "group"), 0, UINT32_MAX, &group) ||
	    !take_integer(json_object_get(line, "mode"), 0, 07777, &mode))
		return false;
	attribute->owner = (int32_t)owner;
	attribute->group = (uint32_t)group;
	attribute->mode = (uint32_t)mode;
	attribute->listed = acl;
	if (acl && (!take_entries(json_object_get(acl, "positive"), false, &attribute->acl) ||
		    !take_entries(json_object_get(acl, "negative"), true, &attribute->acl)))
		return false;
	attribute->path = admin_bytes(path);
	return attribute->path;
}

/* False: it is damaged, or there is no memory. */
static bool add_line(struct admin_attributes *attributes, const char *text)
{
	struct admin_attribute *attribute = calloc(1, sizeof(*attribute));
	json_t *line = attribute ? json_loads(text, 0, NULL) : NULL;
	struct admin_attribute **found = NULL;

	if (line && take_attribute(line, attribute))
		found = tsearch(attribute, &attributes->tree, compare_attributes);
	json_decref(line);
	if (found && *found == attribute)
		return true;
	if (attribute)
		free_attribute(attribute);
	return false;
}

/* Reads the attributes from an open file and closes it. 0, or 1 after an error. */
static int read_attributes(struct admin_run *run, int fd, struct admin_attributes **out)
{
	struct admin_attributes *attributes = calloc(1, sizeof(*attributes));
	FILE *file = fdopen(fd, "r");
	unsigned long number = 0;
	char *line = NULL;
	size_t room = 0;
	bool good = attributes && file;

	while (good && getline(&line, &room, file) > 0) {
		number++;
		good = add_line(attributes, line);
	}
	good = good && !ferror(file);
	free(line);
	if (file)
		fclose(file);
	else
		close(fd);
	if (good) {
		*out = attributes;
		return 0;
	}
	admin_attributes_free(attributes);
	return admin_fail(run, 1,
			  "%s: line %lu is damaged or comes twice; import without --attributes, or "
			  "export again",
			  ADMIN_ATTRIBUTES, number);
}

int admin_attributes_load(struct admin_run *run, struct admin_attributes **attributes)
{
	int fd;

	*attributes = NULL;
	if (!admin_get_flag(run, "attributes"))
		return 0;
	fd = admin_source_open(run, ADMIN_ATTRIBUTES, ADMIN_SOURCE_FILE);
	if (fd < 0)
		return admin_fail(run, 1,
				  "%s: %s; only a tree that was exported with --attributes has it",
				  ADMIN_ATTRIBUTES, strerror(-fd));
	return read_attributes(run, fd, attributes);
}

void admin_attributes_free(struct admin_attributes *attributes)
{
	if (attributes)
		tdestroy(attributes->tree, free_attribute);
	free(attributes);
}

const struct admin_attribute *admin_attributes_find(const struct admin_attributes *attributes,
						    const char *path)
{
	const struct admin_attribute key = {.path = path};
	struct admin_attribute **found =
		attributes ? tfind(&key, &attributes->tree, compare_attributes) : NULL;

	return found ? *found : NULL;
}

bool admin_is_same_acl(const struct store_acl *a, const struct store_acl *b)
{
	size_t count = (size_t)a->positive + a->negative;

	assert(count <= STORE_ACL_MAX);
	return a->positive == b->positive && a->negative == b->negative &&
	       !memcmp(a->entry, b->entry, count * sizeof(a->entry[0]));
}
