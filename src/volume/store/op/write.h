/* SPDX-License-Identifier: BSD-2-Clause */
/* StoreData: taking bytes, and one commit for them. */
#ifndef STORE_WRITE_H
#define STORE_WRITE_H

#include "volume/interface.h"

/* As in struct store_ops. */
int write_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
		const struct store_set *set, uint64_t offset, uint64_t length, uint64_t file_length,
		struct store_writer **writer);
int write_bytes(struct store_writer *writer, const struct iovec *iov, int count);
int write_commit(struct store_writer *writer, struct store_status *status,
		 struct store_changes *changes);
void write_abort(struct store_writer *writer);

#endif
