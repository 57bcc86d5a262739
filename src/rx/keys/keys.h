/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the table of service keys. */
#ifndef KEYS_KEYS_H
#define KEYS_KEYS_H

#include <rxwire/keys.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* One key; lives in secret memory. */
struct rxw_key {
	enum rxw_key_type type;
	int32_t kvno, enctype;
	uint32_t length;
	unsigned source; /* 0: added; else the number of the file that has it */
	uint8_t bytes[RXW_KEY_MAX];
};

/* Keys in a row, in secret memory; the added ones first, then those of the files, the latest file first. */
struct rxw_key_list {
	struct rxw_key *keys;
	size_t count, room;
};

/* A file that was loaded: what is looked at when files are loaded again. */
struct rxw_key_source {
	struct rxw_key_source *next;
	unsigned number;
	char *which; /* whose keys; NULL: anybody's */
	char path[];
};

/*
 * lock: list, which is replaced as a whole by whoever loads a file, so that nobody finds half of a file's keys.
 * loading: taken first, for as long as files are read: sources and numbers.
 */
struct rxw_keys {
	atomic_uint references;
	pthread_rwlock_t lock;
	struct rxw_key_list list;
	pthread_mutex_t loading;
	struct rxw_key_source *sources;
	unsigned numbers;
};

/* Whether the numbers and the length go together: 0, or -RXW_EINVAL. */
int rxw_key_check(enum rxw_key_type type, int32_t kvno, int32_t enctype, size_t length);

/* Append; the list grows in secret memory. 0, -RXW_ENOMEM, -RXW_ELIMIT. */
int rxw_key_list_append(struct rxw_key_list *list, const struct rxw_key *key);
void rxw_key_list_free(struct rxw_key_list *list);
/* The first key with these numbers, or NULL. */
struct rxw_key *rxw_key_list_find(const struct rxw_key_list *list, enum rxw_key_type type, int32_t kvno,
				  int32_t enctype);

void rxw_key_source_free(struct rxw_key_source *source);

#endif
