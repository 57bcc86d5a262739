/* SPDX-License-Identifier: BSD-2-Clause */
/* OpenAFS's files of service keys, KeyFileExt and KeyFile (rx-protocol 7.3.9). */

#include "keys/keys.h"

#include <rxwire/error.h>

#include <stdio.h>
#include <string.h>

#include "common/failure.h"

#define EXT_HEAD   20 /* bytes before a key of KeyFileExt: a length, and four words */
#define EXT_WORDS  16
#define OLD_KEYS   8 /* a KeyFile has no more */
#define OLD_RECORD 12

static uint32_t load_word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint8_t *store_word(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 24);
	p[1] = (uint8_t)(value >> 16);
	p[2] = (uint8_t)(value >> 8);
	p[3] = (uint8_t)value;
	return p + 4;
}

/* Append a key; on failure describe the problem in `error`. */
static int append_parsed(struct rxw_key_list *list, size_t first, const struct rxw_key *key,
			 uint32_t number, size_t at, char *error)
{
	struct rxw_key_list own = {.count = list->count - first};
	const struct rxw_key *same;
	int result;

	if (rxw_key_check(key->type, key->kvno, key->enctype, key->length) < 0)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "key %u, at byte %zu: %u bytes is the wrong length for a key of "
				 "type %u, enctype %d",
				 number, at, key->length, key->type, key->enctype);
	if (own.count)
		own.keys = list->keys + first;
	same = rxw_key_list_find(&own, key->type, key->kvno, key->enctype);
	if (same)
		return fail_with(
			-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
			"key %u, at byte %zu: a second key of type %u, kvno %d, enctype %d", number,
			at, key->type, key->kvno, key->enctype);
	result = rxw_key_list_append(list, key);
	if (result < 0)
		snprintf(error, RXW_KEY_FILE_ERROR, "key %u, at byte %zu: %s", number, at,
			 rxw_strerror(result));
	return result;
}

/* Parse the key of a KeyFileExt at *at, and advance *at. */
static int parse_ext_key(const uint8_t *data, size_t size, uint32_t number, size_t *at,
			 struct rxw_key_list *list, size_t first, struct rxw_key *key, char *error)
{
	const uint8_t *p = data + *at;
	uint32_t type, length;
	size_t start = *at;

	if (size - start < EXT_HEAD)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "key %u, at byte %zu: the file ends within the key", number,
				 start);
	if (load_word(p) != EXT_WORDS)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "key %u, at byte %zu: its header has %u bytes instead of 16",
				 number, start, load_word(p));
	length = load_word(p + 16);
	if (length > size - start - EXT_HEAD)
		return fail_with(
			-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
			"key %u, at byte %zu: the key has %u bytes, but the file only %zu more",
			number, start, length, size - start - EXT_HEAD);
	*at = start + EXT_HEAD + length;
	type = load_word(p + 4);
	if (type > RXW_KEY_KRB5)
		return 0; /* a type of a later version: ignored */
	if (length > RXW_KEY_MAX || load_word(p + 8) > INT32_MAX)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "key %u, at byte %zu: kvno %u, %u bytes of key", number, start,
				 load_word(p + 8), length);
	key->type = (enum rxw_key_type)type;
	key->kvno = (int32_t)load_word(p + 8);
	key->enctype = type == RXW_KEY_DES ? 0 : (int32_t)load_word(p + 12);
	key->length = length;
	memset(key->bytes, 0, sizeof(key->bytes));
	memcpy(key->bytes, p + EXT_HEAD, length);
	return append_parsed(list, first, key, number, start, error);
}

static int parse_ext(const uint8_t *data, size_t size, unsigned source, struct rxw_key_list *list,
		     char *error)
{
	size_t at = 4, first = list->count;
	struct rxw_key key = {.source = source};
	uint32_t count = load_word(data);
	int result = 0;

	for (uint32_t i = 1; i <= count && result == 0; i++)
		result = parse_ext_key(data, size, i, &at, list, first, &key, error);
	if (result == 0 && at != size) {
		snprintf(error, RXW_KEY_FILE_ERROR,
			 "%zu extra bytes after the last of %u keys, at byte %zu", size - at, count,
			 at);
		result = -RXW_EDECODE;
	}
	explicit_bzero(&key, sizeof(key));
	return result;
}

static int parse_old(const uint8_t *data, unsigned source, struct rxw_key_list *list, char *error)
{
	size_t first = list->count;
	struct rxw_key key = {.source = source, .type = RXW_KEY_DES, .length = 8};
	uint32_t count = load_word(data);
	int result = 0;

	for (uint32_t i = 0; i < count && result == 0; i++) {
		const uint8_t *p = data + 4 + i * OLD_RECORD;

		key.kvno = (int32_t)load_word(p);
		memcpy(key.bytes, p + 4, 8);
		result = append_parsed(list, first, &key, i + 1, (size_t)(p - data), error);
	}
	explicit_bzero(&key, sizeof(key));
	return result;
}

/* A KeyFile has room for its keys only, or for eight. */
static bool is_old(const uint8_t *data, size_t size)
{
	uint32_t count = load_word(data);

	return count <= OLD_KEYS &&
	       (size == 4 + count * OLD_RECORD || size == 4 + OLD_KEYS * OLD_RECORD);
}

/* Remove the keys of a file that is damaged. */
static void cut_list(struct rxw_key_list *list, size_t count)
{
	if (list->count > count)
		explicit_bzero(list->keys + count, (list->count - count) * sizeof(*list->keys));
	list->count = count;
}

__attribute__((cold))
int rxw_key_file_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		       struct rxw_key_list *list, char *error)
{
	size_t before = list->count;
	int result;

	if (size > RXW_KEY_FILE_MAX)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "%zu bytes are too many for a key file", size);
	if (size < 4)
		return fail_with(-RXW_EDECODE, error, RXW_KEY_FILE_ERROR,
				 "%zu bytes are too few for a key file", size);
	if (data[0] == 5 && (data[1] == 1 || data[1] == 2)) {
		result = rxw_keytab_parse(data, size, which, source, list, error);
	} else {
		/*
		 * A KeyFile may begin like a KeyFileExt (kvno 16), but then the rest does not
		 * match.
		 */
		result = parse_ext(data, size, source, list, error);
		if (result == -RXW_EDECODE && is_old(data, size)) {
			cut_list(list, before);
			result = parse_old(data, source, list, error);
		}
	}
	if (result == 0 && list->count == before) {
		snprintf(error, RXW_KEY_FILE_ERROR, "the file holds no key");
		result = -RXW_ENOKEY;
	}
	if (result < 0)
		cut_list(list, before);
	return result;
}

uint8_t *rxw_key_file_write(const struct rxw_key_list *list, size_t *size)
{
	uint8_t *data, *p;

	*size = 4;
	for (size_t i = 0; i < list->count; i++)
		*size += EXT_HEAD + list->keys[i].length;
	data = rxw_secret_alloc(*size);
	if (!data)
		return NULL;
	p = store_word(data, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++) {
		const struct rxw_key *key = &list->keys[i];

		p = store_word(p, EXT_WORDS);
		p = store_word(p, (uint32_t)key->type);
		p = store_word(p, (uint32_t)key->kvno);
		p = store_word(p, (uint32_t)key->enctype);
		p = store_word(p, key->length);
		memcpy(p, key->bytes, key->length);
		p += key->length;
	}
	return data;
}
