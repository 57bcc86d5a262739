/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing files of service keys: keytabs, KeyFileExt and KeyFile, recognised by their contents. */
#ifndef KEYS_FILE_H
#define KEYS_FILE_H

#include "keys/keys.h"

/* Maximal size of a file of keys. */
#define RXW_KEY_FILE_MAX ((size_t)1 << 20)

/* Size of an error text, without the name of the file. */
#define RXW_KEY_FILE_ERROR 384

/*
 * Parse the keys in `size` bytes at `data`, and append them to `list` with their source. `which`
 * selects keys of a keytab, as in rxw_keys_load(). On failure the list is unchanged, and `error`
 * (of RXW_KEY_FILE_ERROR bytes) names the problem and its position: -RXW_EDECODE, -RXW_ENOKEY (no
 * selected key), -RXW_ELIMIT, -RXW_ENOMEM. The data may be hostile.
 */
int rxw_key_file_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		       struct rxw_key_list *list, char *error);

/* A KeyFileExt with these keys, of rxw_secret_alloc(); NULL: no memory. */
uint8_t *rxw_key_file_write(const struct rxw_key_list *list, size_t *size);

/* For rxw_key_file_parse(): parse a keytab. */
int rxw_keytab_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		     struct rxw_key_list *list, char *error);

#endif
