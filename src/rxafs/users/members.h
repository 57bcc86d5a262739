/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of JSON objects. */
#ifndef RXAFS_MEMBERS_H
#define RXAFS_MEMBERS_H

#include <stdint.h>

#include <jansson.h>

/* Names from servers may be in other encodings. */
static inline void add_json_text(json_t *to, const char *name, const char *text)
{
	json_t *value = json_string(text);

	json_object_set_new(to, name, value ? value : json_string("?"));
}

static inline void add_json_number(json_t *to, const char *name, uint64_t number)
{
	json_object_set_new(to, name, json_integer((json_int_t)number));
}

#endif
