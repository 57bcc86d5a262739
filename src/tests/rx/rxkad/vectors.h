/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the recorded vectors of rxkad. */
#ifndef RXW_TESTS_RXKAD_VECTORS_H
#define RXW_TESTS_RXKAD_VECTORS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

static inline json_t *vectors_load(const char *name)
{
	char path[512];
	json_error_t error;
	json_t *root;

	snprintf(path, sizeof(path), "%s/vectors/%s", RXW_TEST_SRCDIR, name);
	root = json_load_file(path, 0, &error);
	ck_assert_msg(root != NULL, "%s:%d: %s", path, error.line, error.text);
	return root;
}

/* The member of that name, which must exist. */
static inline json_t *member(const json_t *object, const char *key)
{
	json_t *v = json_object_get(object, key);

	ck_assert_msg(v != NULL, "no member \"%s\"", key);
	return v;
}

static inline const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(member(object, key));

	ck_assert_msg(s != NULL, "\"%s\" is no string", key);
	return s;
}

static inline int64_t number(const json_t *object, const char *key)
{
	json_t *v = member(object, key);

	ck_assert_msg(json_is_integer(v), "\"%s\" is no number", key);
	return json_integer_value(v);
}

static inline uint32_t hex_number(const json_t *object, const char *key)
{
	return (uint32_t)strtoul(text(object, key), NULL, 16);
}

/* The bytes of a hex string, on the heap in their exact size. */
static inline uint8_t *unhex(const char *hex, size_t *size)
{
	uint8_t *p;

	ck_assert_uint_eq(strlen(hex) % 2, 0);
	*size = strlen(hex) / 2;
	p = malloc(*size ? *size : 1);
	ck_assert_ptr_nonnull(p);
	for (size_t i = 0; i < *size; i++) {
		unsigned v;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		p[i] = (uint8_t)v;
	}
	return p;
}

static inline uint8_t *bytes(const json_t *object, const char *key, size_t *size)
{
	return unhex(text(object, key), size);
}

/* Exactly `size` bytes into `out`. */
static inline void bytes_of(const json_t *object, const char *key, void *out, size_t size)
{
	size_t got;
	uint8_t *p = bytes(object, key, &got);

	ck_assert_uint_eq(got, size);
	memcpy(out, p, size);
	free(p);
}

#endif
