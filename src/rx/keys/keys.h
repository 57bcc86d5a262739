/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the table of service keys. */
#ifndef KEYS_KEYS_H
#define KEYS_KEYS_H

#include <rxwire/keys.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

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

#endif
