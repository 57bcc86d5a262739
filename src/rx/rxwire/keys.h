/* SPDX-License-Identifier: BSD-2-Clause */
/* Service keys of a server: what opens the tickets and tokens of its clients (rx-protocol 7.3.9). */
#ifndef RXWIRE_KEYS_H
#define RXWIRE_KEYS_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A table of keys, shared by the security classes of a server and the program that loads it. It is
 * counted; any thread may call any of these functions at any time, also while connections are being
 * authenticated. Keys lie in memory that no core dump has, and are wiped when they go.
 */
typedef struct rxw_keys rxw_keys;

/* What a key is for; the numbers are those of OpenAFS's KeyFileExt. */
enum rxw_key_type {
	RXW_KEY_DES = 0,  /* rxkad, single DES: 8 bytes; its enctype is 0 and not looked at */
	RXW_KEY_RXGK = 1, /* tokens of rxgk */
	RXW_KEY_KRB5 = 2  /* rxkad with tickets of Kerberos 5 of any other enctype */
};

/* The longest key of any type, in bytes. */
#define RXW_KEY_MAX 64
/* As many keys as a table takes. */
#define RXW_KEYS_MAX 1024

/* What is known of a key beside the key itself. */
struct rxw_key_info {
	size_t size;      /* set by the caller */
	enum rxw_key_type type;
	int32_t kvno;     /* version, 0 or more */
	int32_t enctype;  /* of RFC 3961; 0 for RXW_KEY_DES */
	size_t length;    /* bytes */
};

/* An empty table with one reference. 0, or -RXW_ENOMEM. */
int rxw_keys_create(rxw_keys **keys);
rxw_keys *rxw_keys_ref(rxw_keys *keys);
/* NULL is allowed. The last reference wipes the keys. */
void rxw_keys_unref(rxw_keys *keys);

/*
 * Add a key, or replace the one that was added with these three numbers; the bytes are copied. Those
 * that were loaded from files are left as they are: a key that was added is found before them.
 * -RXW_EINVAL: no such type, kvno below 0, length 0 or above RXW_KEY_MAX or (DES) not 8, enctype of an
 * rxgk or Kerberos key not above 0, or a key of another length than its enctype has. -RXW_ENOMEM.
 * -RXW_ELIMIT: the table is full.
 */
int rxw_keys_add(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype, const void *key,
		 size_t length);

/* The same with fresh random bytes; enctypes 17 to 20 only, else -RXW_EINVAL. -RXW_ESYS: no random bytes. */
int rxw_keys_generate(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype);

/*
 * Copy the key with exactly these numbers into key, which has room for that many bytes, and its length to
 * *length; the caller wipes it. -RXW_ENOKEY: there is none. -RXW_ELIMIT: it is longer than room.
 */
int rxw_keys_find(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype, void *key, size_t room,
		  size_t *length);

/*
 * The same for the key that new tokens are made with: of the highest kvno that a type has, the strongest
 * enctype (20, 18, 26, 19, 17, 25, 16, 23, then others). kvno and enctype may be NULL.
 */
int rxw_keys_best(rxw_keys *keys, enum rxw_key_type type, int32_t *kvno, int32_t *enctype, void *key, size_t room,
		  size_t *length);

/*
 * What key number index is, counted from 0; -RXW_ENOKEY behind the last. The order is that in which they
 * are found; it changes when a file is loaded again.
 */
int rxw_keys_info(rxw_keys *keys, size_t index, struct rxw_key_info *info);

/*
 * Load the keys of a file, which is known by what it holds: an MIT keytab, or OpenAFS's KeyFileExt or KeyFile.
 * They take the place of what this path gave before, at once and only if all of the file is good. whose: of a
 * keytab only the keys of that principal, "afs/cell@REALM", or "afs/cell" in any realm; a name without '/' and
 * '@' is a cell: afs/cell, and where the file does not have that afs@CELL in capitals or not. NULL: anybody's,
 * unless two principals have different keys of one kvno and enctype. Keys of single DES become RXW_KEY_DES, all
 * others of a keytab RXW_KEY_KRB5.
 *
 * -RXW_ESYS: the file cannot be read, errno says why. -RXW_EDECODE: it is damaged or no file of keys.
 * -RXW_ENOKEY: it has no such key. -RXW_ELIMIT: too many keys. -RXW_ENOMEM. The keys that were there remain, and
 * error, of room bytes if room is not 0, has a sentence with the path and where in the file. After success it is
 * empty, or a warning: every user of the host may read the file, or write it.
 */
int rxw_keys_load(rxw_keys *keys, const char *path, const char *whose, char *error, size_t room);

/*
 * Read every file that was loaded once more. How many of them had other keys than before (these are in force
 * now), or the result of the first that could not be loaded: its old keys stay, and the other files are read all
 * the same. error as in rxw_keys_load(). To be called when a program is told to (SIGHUP) and now and then: a new key is to be in the servers'
 * files before tickets are made with it.
 */
int rxw_keys_reload(rxw_keys *keys, char *error, size_t room);

/*
 * Write all keys of the table to a KeyFileExt that only its owner can read, whole or not at all. A file of that
 * name is replaced if replace is not 0; else it is -RXW_ESYS with errno EEXIST. -RXW_ESYS, -RXW_ENOMEM; error as
 * in rxw_keys_load().
 */
int rxw_keys_write(rxw_keys *keys, const char *path, int replace, char *error, size_t room);

#ifdef __cplusplus
}
#endif
#endif
