/* SPDX-License-Identifier: BSD-2-Clause */
/* Queries on volumes, and their settings. store.h has the other operations on volumes. */
#ifndef STORE_ADMIN_H
#define STORE_ADMIN_H

#include "volume/interface.h"

/* As in struct store_ops. */
int admin_volume(struct store *store, uint32_t id, struct store_volume *volume);
int admin_by_name(struct store *store, const char *name, struct store_volume *volume);
int admin_next(struct store *store, uint32_t id, struct store_volume *volume);
int admin_at(struct store *store, uint32_t at, struct store_volume *volume);
void admin_totals(struct store *store, struct store_totals *totals);
int admin_set(struct store *store, const struct store_caller *caller, uint32_t id, unsigned mask,
	      const struct store_volume *volume);
int admin_space(struct store *store, struct store_space *space);

#endif
