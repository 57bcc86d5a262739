/* SPDX-License-Identifier: BSD-2-Clause */
/* Service keys of a server (rx-protocol 7.3.9). See rxw_keys(3). */
#ifndef RXWIRE_KEYS_H
#define RXWIRE_KEYS_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table of keys, which decrypt the tickets and tokens of clients. Security classes share it. It
 * is reference counted. Any thread may call any of these functions at any time, also while
 * connections are being authenticated. Keys are excluded from core dumps and wiped when they are
 * removed.
 */
typedef struct rxw_keys rxw_keys;

/* Type of a key; the numbers are those of OpenAFS's KeyFileExt. */
enum rxw_key_type {
	RXW_KEY_DES = 0,  /* rxkad, single DES: 8 bytes; enctype 0, ignored */
	RXW_KEY_RXGK = 1, /* rxgk tokens */
	RXW_KEY_KRB5 = 2  /* rxkad, Kerberos 5 tickets of any other enctype */
};

/* Maximum length of a key in bytes. */
#define RXW_KEY_MAX 64
/* Maximum number of keys in a table. */
#define RXW_KEYS_MAX 1024

/* Description of a key, without the key itself. */
struct rxw_key_info {
	size_t size; /* set by the caller */
	enum rxw_key_type type;
	int32_t kvno;	 /* version, 0 or more */
	int32_t enctype; /* RFC 3961; 0 for RXW_KEY_DES */
	size_t length;	 /* bytes */
};

/* Create an empty table with one reference. 0 or -RXW_ENOMEM. */
RXW_MUST_USE int rxw_keys_create(rxw_keys **keys);
rxw_keys *rxw_keys_ref(rxw_keys *keys);
/* NULL is ignored. The last reference wipes the keys. */
void rxw_keys_unref(rxw_keys *keys);

/*
 * Add a copy of a key, or replace the one that was added with these three numbers. Keys loaded
 * from files are not changed; a key that was added takes precedence over them. -RXW_EINVAL:
 * unknown type, kvno below 0, length 0 or above RXW_KEY_MAX or (DES) not 8, enctype of an rxgk or
 * Kerberos key not above 0, or a length that does not match the enctype. -RXW_ENOMEM.
 * -RXW_ELIMIT: the table is full.
 */
RXW_MUST_USE
int rxw_keys_add(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype,
		 const void *key, size_t length);

/*
 * Add a random key. The enctype must be 17 to 20, else -RXW_EINVAL. -RXW_ESYS: no random numbers.
 */
RXW_MUST_USE
int rxw_keys_generate(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype);

/*
 * Describe the key at position `index`, counted from 0; -RXW_ENOKEY after the last. The order is
 * that of look-ups; it changes when a file is loaded again.
 */
int rxw_keys_info(rxw_keys *keys, size_t index, struct rxw_key_info *info);

/*
 * Load a key file: an MIT keytab, or OpenAFS's KeyFileExt or KeyFile, recognised by its contents.
 * The keys replace those loaded from this path before, in one step and only if the whole file is
 * valid. `whose` selects the principal in a keytab: "afs/cell@REALM"; "afs/cell" in any realm; a
 * name without '/' and '@' is a cell: afs/cell, or if the file does not have it afs@CELL, in
 * capitals or not. NULL: any principal, unless two have different keys with the same kvno and
 * enctype. Single DES keys become RXW_KEY_DES, other keys of a keytab RXW_KEY_KRB5.
 *
 * -RXW_ESYS: the file cannot be read (errno). -RXW_EDECODE: damaged, or not a key file.
 * -RXW_ENOKEY: no such key. -RXW_ELIMIT: too many keys. -RXW_ENOMEM. After a failure the old keys
 * remain, and `error`, of `room` bytes unless that is 0, has a message with the path and the
 * position. After success it is empty, or a warning that all users of the host can read or write
 * the file.
 */
RXW_MUST_USE
int rxw_keys_load(rxw_keys *keys, const char *path, const char *whose, char *error, size_t room);

/*
 * Load all these files again. Returns the number of files whose keys have changed, or the result
 * for the first file that could not be loaded: its old keys remain, and the other files are still
 * loaded. `error` as in rxw_keys_load(). Call it on SIGHUP and periodically: servers must have a
 * new key before tickets are issued with it.
 */
RXW_MUST_USE int rxw_keys_reload(rxw_keys *keys, char *error, size_t room);

/*
 * Write all keys of the table to a KeyFileExt that only its owner can read, completely or not at
 * all. An existing file is replaced if `replace` is nonzero, otherwise -RXW_ESYS with errno
 * EEXIST. -RXW_ESYS, -RXW_ENOMEM; `error` as in rxw_keys_load().
 */
RXW_MUST_USE
int rxw_keys_write(rxw_keys *keys, const char *path, int replace, char *error, size_t room);

#ifdef __cplusplus
}
#endif
#endif
