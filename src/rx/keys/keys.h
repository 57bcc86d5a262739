/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service keys inside the library: their table, files of keys (keytabs, KeyFileExt and KeyFile, recognised by their
 * contents), and memory for secrets.
 */
#ifndef KEYS_KEYS_H
#define KEYS_KEYS_H

#include <rxwire/keys.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A key. */
struct rxw_key {
	enum rxw_key_type type;
	int32_t kvno, enctype;
	uint32_t length;
	unsigned source; /* 0: added by the program; else the number of its file */
	uint8_t bytes[RXW_KEY_MAX];
};

/*
 * An array of keys in one rxw_secret_map(): added keys, then those of files, the latest file first.
 */
struct rxw_key_list {
	struct rxw_key *keys;
	size_t count, room;
};

/* A file that was loaded, for loading it again. */
struct rxw_key_source {
	struct rxw_key_source *next;
	unsigned number;
	char *which; /* whose keys are selected; NULL: all */
	char path[];
};

/*
 * `lock` covers `list`, which is replaced as a whole when a file is loaded, so that readers see all
 * keys of a file or none. `loading` covers `sources` and `numbers`, is held while files are read,
 * and is taken before `lock`.
 */
struct rxw_keys {
	atomic_uint references;
	pthread_rwlock_t lock;
	struct rxw_key_list list;
	pthread_mutex_t loading;
	struct rxw_key_source *sources;
	unsigned numbers;
};

/* Check numbers and length: 0, or -RXW_EINVAL. */
int rxw_key_check(enum rxw_key_type type, int32_t kvno, int32_t enctype, size_t length);

/* Append a key. 0, -RXW_ENOMEM, -RXW_ELIMIT. */
int rxw_key_list_append(struct rxw_key_list *list, const struct rxw_key *key);
void rxw_key_list_free(struct rxw_key_list *list);
/* The first key with these numbers, or NULL. */
struct rxw_key *rxw_key_list_find(const struct rxw_key_list *list, enum rxw_key_type type,
				  int32_t kvno, int32_t enctype);

/*
 * Copy the key with these three numbers to `key`, which has `room` bytes, and its length to
 * *length. The caller wipes the copy. -RXW_ENOKEY: no such key. -RXW_ELIMIT: it is longer than
 * `room`.
 */
int rxw_keys_find(rxw_keys *keys, enum rxw_key_type type, int32_t kvno, int32_t enctype, void *key,
		  size_t room, size_t *length);

/*
 * The same for the key with which new tokens are sealed: of the highest kvno of a type, the
 * strongest enctype (20, 18, 26, 19, 17, 25, 16, 23, then others). kvno and enctype may be NULL.
 */
int rxw_keys_best(rxw_keys *keys, enum rxw_key_type type, int32_t *kvno, int32_t *enctype,
		  void *key, size_t room, size_t *length);

void rxw_key_source_free(struct rxw_key_source *source);

/* --- files --- */

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

/* --- memory for keys and tokens, wiped when it is freed --- */

/*
 * `size` bytes of zeros on the heap, aligned to 64. NULL: no memory. Must not be resized. Freed
 * only by rxw_secret_free(), which wipes it; NULL is allowed there. Any thread.
 */
void *rxw_secret_alloc(size_t size);
void rxw_secret_free(void *secret);

/*
 * A separate mapping of at least `size` zero bytes that is excluded from core dumps
 * (MADV_DONTDUMP), for the long-lived table of service keys. NULL: no memory. Unmapped by
 * rxw_secret_unmap() with the same size, which wipes it; NULL is allowed there. Any thread.
 */
void *rxw_secret_map(size_t size);
void rxw_secret_unmap(void *secret, size_t size);

#endif
