/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: files of service keys: keytabs, KeyFileExt and KeyFile. The first byte selects the
 * service and the list's initial keys, the rest is the file.
 */

#include "fuzz.h"

#include <string.h>

#include <rxwire/error.h>

#include "keys/keys.h"

const char fuzz_name[] = "keytab";
const size_t fuzz_max = 1500;
const unsigned fuzz_cost = 20;

#define SOURCE 7u

static const char *const wanted[] = {NULL,
				     "example.org",
				     "afs/example.org",
				     "afs/example.org@EXAMPLE.ORG",
				     "afs@EXAMPLE.ORG",
				     "",
				     "/",
				     "@"};

static bool equal(const struct rxw_key *a, const struct rxw_key *b)
{
	return a->type == b->type && a->kvno == b->kvno && a->enctype == b->enctype &&
	       a->length == b->length && a->source == b->source &&
	       !memcmp(a->bytes, b->bytes, a->length);
}

/* Keys read from a file are valid and distinct. */
static void check_keys(const struct rxw_key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct rxw_key *k = &keys[i];

		FUZZ_CHECK(!rxw_key_check(k->type, k->kvno, k->enctype, k->length));
		FUZZ_CHECK(k->source == SOURCE);
		FUZZ_CHECK(k->type != RXW_KEY_DES || k->enctype == 0);
		for (size_t n = 0; n < i; n++)
			FUZZ_CHECK(keys[n].type != k->type || keys[n].kvno != k->kvno ||
				   keys[n].enctype != k->enctype);
	}
}

/* Keys written as a KeyFileExt are read back unchanged. */
static void write_and_read(struct rxw_key *keys, size_t count)
{
	struct rxw_key_list of = {.keys = keys, .count = count, .room = count}, back = {0};
	char error[RXW_KEY_FILE_ERROR] = "";
	size_t size;
	uint8_t *file = rxw_key_file_write(&of, &size);

	FUZZ_CHECK(file);
	FUZZ_CHECK(!rxw_key_file_parse(file, size, NULL, SOURCE, &back, error));
	FUZZ_CHECK(back.count == count);
	for (size_t i = 0; i < count; i++)
		FUZZ_CHECK(equal(&back.keys[i], &keys[i]));
	rxw_key_list_free(&back);
	rxw_secret_free(file);
}

/* A message that is safe on a terminal. */
static void check_text(const char *error)
{
	size_t length = strnlen(error, RXW_KEY_FILE_ERROR);

	FUZZ_CHECK(length && length < RXW_KEY_FILE_ERROR);
	for (size_t i = 0; i < length; i++)
		FUZZ_CHECK((uint8_t)error[i] >= 0x20 && error[i] != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct rxw_key known = {
		.type = RXW_KEY_KRB5, .kvno = 3, .enctype = 18, .length = 32, .source = 1, .bytes = {1, 2}};
	struct rxw_key_list list = {0};
	char error[RXW_KEY_FILE_ERROR] = "";
	size_t before;
	int result;

	if (size < 1)
		return 0;
	if (data[0] & 8)
		FUZZ_CHECK(!rxw_key_list_append(&list, &known));
	before = list.count;
	result = rxw_key_file_parse(data + 1, size - 1, wanted[data[0] & 7], SOURCE, &list, error);
	FUZZ_CHECK(before == 0 || equal(&list.keys[0], &known));
	if (result) {
		FUZZ_CHECK(result == -RXW_EDECODE || result == -RXW_ENOKEY);
		FUZZ_CHECK(list.count == before);
		check_text(error);
	} else {
		FUZZ_CHECK(list.count > before && list.count <= RXW_KEYS_MAX);
		check_keys(list.keys + before, list.count - before);
		write_and_read(list.keys + before, list.count - before);
	}
	rxw_key_list_free(&list);
	return 0;
}
