/* SPDX-License-Identifier: BSD-2-Clause */
/* FetchData: reading one version. */
#ifndef STORE_READ_H
#define STORE_READ_H

#include "volume/interface.h"

/* As in struct store_ops. */
int read_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_reader **reader, struct store_status *status);
ssize_t read_bytes(struct store_reader *reader, const struct iovec *iov, int count, uint64_t offset,
		   unsigned flags);
void read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length);
int read_end(struct store_reader *reader);

#endif
