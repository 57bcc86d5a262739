/* SPDX-License-Identifier: BSD-2-Clause */
/* What a file of service keys says: keytabs, KeyFileExt and KeyFile, told apart by what they hold. */
#ifndef KEYS_FILE_H
#define KEYS_FILE_H

#include "keys/keys.h"

/* No file of keys is larger. */
#define RXW_KEY_FILE_MAX ((size_t)1 << 20)

/* Room for what is wrong, without the name of the file. */
#define RXW_KEY_FILE_ERROR 384

/*
 * Read the keys in size bytes at data and append them to list, with the source. which: whose keys are
 * wanted of a keytab, as rxw_keys_load() has it. On failure the list is as it was, and error (of
 * RXW_KEY_FILE_ERROR bytes) says what is wrong and where: -RXW_EDECODE, -RXW_ENOKEY (it holds none that is
 * wanted), -RXW_ELIMIT, -RXW_ENOMEM. The bytes may be anything.
 */
int rxw_key_file_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		       struct rxw_key_list *list, char *error);

/* Bytes of a KeyFileExt with these keys, in secret memory; NULL: no memory. */
uint8_t *rxw_key_file_write(const struct rxw_key_list *list, size_t *size);

/* Inside: a keytab, from its first byte. */
int rxw_keytab_parse(const uint8_t *data, size_t size, const char *which, unsigned source,
		     struct rxw_key_list *list, char *error);

#endif
