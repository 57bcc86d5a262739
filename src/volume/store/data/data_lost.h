/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of objects that a flush lost. */
#ifndef STORE_DATA_LOST_H
#define STORE_DATA_LOST_H

#include "volume/store/data/data.h"

/*
 * -- bytes that a flush lost. Reading them is -EIO as long as the object exists; the user keeps a record of them, for
 * store_data_set_lost() at the next start. --
 */
struct store_lost {
	struct store_owner owner;
	uint64_t object, safe; /* what lies behind `safe` is lost */
};
/* Whether bytes are lost at all, and whether a content refers to lost ones. */
bool store_data_any_lost(struct store_data *data);
bool store_data_is_lost(struct store_data *data, const struct store_content *content);
/* Whether there are some without a record: *lost. Call store_data_lost_recorded() when it has one. */
bool store_data_lost_next(struct store_data *data, struct store_lost *lost);
void store_data_lost_recorded(struct store_data *data, const struct store_lost *lost);
/* 0 or -ENOMEM. */
int store_data_set_lost(struct store_data *data, const struct store_lost *lost);
/*
 * A flush of everything has failed, for some file: flush each object, also of earlier processes. 0, or the first error; then
 * the objects that could not be flushed are lost.
 */
int store_data_sync_each(struct store_data *data);

#endif
