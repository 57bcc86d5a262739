/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MIT keytabs (rx-protocol 7.3.9). libkrb5 is not used, because it leaves copies of keys in memory
 * that core dumps contain, and does not report what is wrong with a damaged file, and where.
 */

#include "base/ascii.h"
#include "common/failure.h"
#include "keys/keys.h"

#include <rxwire/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_TEXT 128 /* of a principal in a message; longer ones are cut */

/* A string of an entry, within the file's data. */
struct piece {
	const uint8_t *at;
	size_t length;
};

struct entry {
	size_t offset;	   /* of the entry in the file */
	struct piece name; /* encoded components and realm, for comparing principals */
	struct piece realm;
	struct piece parts[2]; /* the first two components */
	unsigned components;
	uint32_t timestamp, kvno;
	uint16_t enctype;
	struct piece key;
};

/* How well an entry matches; a better match replaces others. */
enum match {
	MATCH_NONE,
	MATCH_REALM /* afs@REALM of a cell */,
	MATCH_EXACT
};

/* The rest of an entry. */
struct cursor {
	const uint8_t *at, *end;
};

static bool get_u16(struct cursor *c, uint16_t *value)
{
	if (c->end - c->at < 2)
		return false;
	*value = (uint16_t)(c->at[0] << 8 | c->at[1]);
	c->at += 2;
	return true;
}

static bool get_u32(struct cursor *c, uint32_t *value)
{
	uint16_t high, low;

	if (c->end - c->at < 4 || !get_u16(c, &high) || !get_u16(c, &low))
		return false;
	*value = (uint32_t)high << 16 | low;
	return true;
}

static bool get_piece(struct cursor *c, struct piece *piece)
{
	uint16_t length;

	if (!get_u16(c, &length) || c->end - c->at < length)
		return false;
	piece->at = c->at;
	piece->length = length;
	c->at += length;
	return true;
}

/* Parse an entry. NULL, or the name of the part that is too long. */
static const char *parse_entry(struct cursor c, struct entry *e)
{
	uint32_t type, kvno;
	uint16_t components;
	struct piece part;

	e->name.at = c.at;
	if (!get_u16(&c, &components) || !get_piece(&c, &e->realm))
		return "realm";
	e->components = components;
	for (unsigned i = 0; i < components; i++) {
		if (!get_piece(&c, &part))
			return "name";
		if (i < 2)
			e->parts[i] = part;
	}
	e->name.length = (size_t)(c.at - e->name.at);
	if (!get_u32(&c, &type) || !get_u32(&c, &e->timestamp) || c.at == c.end)
		return "type of name and time";
	e->kvno = *c.at++;
	if (!get_u16(&c, &e->enctype) || !get_piece(&c, &e->key))
		return "key";
	if (get_u32(&c, &kvno) && kvno != 0)
		e->kvno = kvno;
	return NULL;
}

static bool pieces_equal(struct piece a, struct piece b)
{
	return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Append a string in Kerberos' notation; control characters become '?'. */
static size_t append_piece(char *text, size_t at, struct piece piece)
{
	for (size_t i = 0; i < piece.length && at + 3 < NAME_MAX_TEXT; i++) {
		uint8_t c = piece.at[i];

		if (c == '/' || c == '@' || c == '\\')
			text[at++] = '\\';
		text[at++] = c < 0x20 || c == 0x7f ? '?' : (char)c;
	}
	return at;
}

/* The principal as text, truncated to NAME_MAX_TEXT. */
static void name_text(const struct entry *e, char *text)
{
	size_t at = 0;

	for (unsigned i = 0; i < e->components && i < 2; i++) {
		if (i && at + 3 < NAME_MAX_TEXT)
			text[at++] = '/';
		at = append_piece(text, at, e->parts[i]);
	}
	if (e->components > 2 && at + 6 < NAME_MAX_TEXT)
		at += (size_t)snprintf(text + at, NAME_MAX_TEXT - at, "/...");
	if (at + 3 < NAME_MAX_TEXT)
		text[at++] = '@';
	at = append_piece(text, at, e->realm);
	text[at] = '\0';
}

static bool piece_is(struct piece piece, const char *text, size_t length)
{
	return piece.length == length && memcmp(piece.at, text, length) == 0;
}

/* Match "afs/cell@REALM", "afs/cell" or "cell"; quoted characters are not supported. */
static enum match match_entry(const struct entry *e, const char *which)
{
	const char *at, *slash;
	size_t length;

	if (!which)
		return MATCH_EXACT;
	at = strrchr(which, '@');
	length = at ? (size_t)(at - which) : strlen(which);
	slash = memchr(which, '/', length);
	if (!at && !slash) {
		if (e->components == 2 && piece_is(e->parts[0], "afs", 3) &&
		    piece_is(e->parts[1], which, length))
			return MATCH_EXACT;
		if (e->components == 1 && piece_is(e->parts[0], "afs", 3) &&
		    e->realm.length == length &&
		    rxw_ascii_same_n((const char *)e->realm.at, which, length))
			return MATCH_REALM;
		return MATCH_NONE;
	}
	if (at && !piece_is(e->realm, at + 1, strlen(at + 1)))
		return MATCH_NONE;
	if (!slash)
		return e->components == 1 && piece_is(e->parts[0], which, length) ? MATCH_EXACT
										  : MATCH_NONE;
	if (e->components != 2 || !piece_is(e->parts[0], which, (size_t)(slash - which)))
		return MATCH_NONE;
	return piece_is(e->parts[1], slash + 1, length - (size_t)(slash + 1 - which)) ? MATCH_EXACT
										      : MATCH_NONE;
}

/* The accepted entries of the current match, to resolve duplicates. */
struct taken {
	struct rxw_key_list *list;
	size_t first;	       /* of this file in the list */
	struct entry *entries; /* RXW_KEYS_MAX */
};

/* Append the key of a selected entry. */
static int take_entry(struct taken *taken, const struct entry *e, unsigned source, char *error)
{
	struct rxw_key_list *list = taken->list;
	struct rxw_key key = {.source = source, .kvno = (int32_t)e->kvno, .enctype = e->enctype};
	char name[NAME_MAX_TEXT], other[NAME_MAX_TEXT];
	size_t i;
	int result;

	name_text(e, name);
	key.type = e->enctype >= 1 && e->enctype <= 3 ? RXW_KEY_DES : RXW_KEY_KRB5;
	if (key.type == RXW_KEY_DES)
		key.enctype = 0;
	if (e->kvno > INT32_MAX ||
	    rxw_key_check(key.type, key.kvno, key.enctype, e->key.length) < 0)
		return fail_with(
			-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
			"entry at byte %zu (%s): %zu bytes is the wrong length for a key of "
			"enctype %u, kvno %u",
			e->offset, name, e->key.length, e->enctype, e->kvno);
	key.length = (uint32_t)e->key.length;
	memcpy(key.bytes, e->key.at, e->key.length);
	for (i = taken->first; i < list->count; i++) {
		struct rxw_key *k = &list->keys[i];
		const struct entry *old = &taken->entries[i - taken->first];

		if (k->type != key.type || k->kvno != key.kvno || k->enctype != key.enctype)
			continue;
		if (!pieces_equal(old->name, e->name) && !pieces_equal(old->key, e->key)) {
			name_text(old, other);
			snprintf(
				error, RXW_KEY_FILE_ERROR,
				"%s and %s have different keys of kvno %d, enctype %u: "
				"specify the principal",
				other, name, key.kvno, e->enctype);
			result = -RXW_EDECODE;
			goto out;
		}
		break; /* the newer of two entries of a principal counts */
	}
	if (i < list->count) {
		if (e->timestamp > taken->entries[i - taken->first].timestamp) {
			list->keys[i] = key;
			taken->entries[i - taken->first] = *e;
		}
		result = 0;
		goto out;
	}
	result = rxw_key_list_append(list, &key);
	if (result == 0)
		taken->entries[list->count - 1 - taken->first] = *e;
	else
		snprintf(error, RXW_KEY_FILE_ERROR, "entry at byte %zu (%s): %s", e->offset, name,
			 rxw_strerror(result));
out:
	explicit_bzero(&key, sizeof(key));
	return result;
}

/* Remove the keys of a weaker match. */
static void drop_taken(struct taken *taken)
{
	struct rxw_key_list *list = taken->list;

	if (list->count > taken->first)
		explicit_bzero(list->keys + taken->first,
			       (list->count - taken->first) * sizeof(*list->keys));
	list->count = taken->first;
}

/* Accept the entry if it matches, and remove weaker matches. */
static int consider_entry(struct taken *taken, const struct entry *e, const char *which,
			  enum match *best, unsigned source, char *error)
{
	enum match fits = match_entry(e, which);

	if (fits == MATCH_NONE || fits < *best)
		return 0;
	if (fits > *best)
		drop_taken(taken);
	*best = fits;
	return take_entry(taken, e, source, error);
}

/* Parse the entry at *at, and advance *at. 1; 0: the end (*at == size), or a hole; or an error. */
static int parse_next_entry(const uint8_t *data, size_t size, size_t *at, struct entry *e,
			    char *error)
{
	struct cursor c = {data + *at, data + size};
	const char *wrong;
	uint32_t raw;
	int64_t length;

	*e = (struct entry){.offset = *at};
	if (!get_u32(&c, &raw))
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "%zu extra bytes after the last entry, at byte %zu", size - *at,
				 *at);
	length = (int32_t)raw;
	if (length == 0) {
		*at = size; /* the rest was never written */
		return 0;
	}
	if ((length < 0 ? -length : length) > (int64_t)(size - *at - 4))
		return fail_with(
			-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
			"entry at byte %zu: the entry has %lld bytes, but the file only %zu more",
			*at, (long long)length, size - *at - 4);
	*at += 4 + (size_t)(length < 0 ? -length : length);
	if (length < 0)
		return 0; /* a removed entry */
	c.end = data + *at;
	wrong = parse_entry(c, e);
	if (wrong)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "entry at byte %zu: the entry ends within its %s", e->offset,
				 wrong);
	return 1;
}

__attribute__((cold))
int rxw_keytab_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		     struct rxw_key_list *list, char *error)
{
	struct taken taken = {.list = list, .first = list->count};
	enum match best = MATCH_NONE;
	char seen[NAME_MAX_TEXT] = "";
	struct entry e;
	size_t at = 2;
	int result = 0;

	if (data[1] != 2)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "keytab version 1 is not supported: its byte order is unknown");
	taken.entries = calloc(RXW_KEYS_MAX, sizeof(*taken.entries));
	if (!taken.entries)
		return fail_with(-RXW_ENOMEM, error, RXW_KEY_FILE_ERROR, "%s",
				 rxw_strerror(-RXW_ENOMEM));
	while (at < size && result >= 0) {
		result = parse_next_entry(data, size, &at, &e, error);
		if (result != 1)
			continue;
		if (!*seen)
			name_text(&e, seen);
		result = consider_entry(&taken, &e, which, &best, source, error);
	}
	free(taken.entries);
	if (result < 0)
		return result;
	if (best == MATCH_NONE) {
		if (*seen)
			snprintf(error, RXW_KEY_FILE_ERROR,
				 "no key of %s%.100s; the first one is of %s",
				 which && !strpbrk(which, "/@") ? "afs/" : "",
				 which ? which : "any principal", seen);
		else
			snprintf(error, RXW_KEY_FILE_ERROR, "the keytab has no entries");
		return -RXW_ENOKEY;
	}
	return 0;
}
