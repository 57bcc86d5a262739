/* SPDX-License-Identifier: BSD-2-Clause */
/* The file FORMAT, which says that a directory is a store, and which one. */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include <stdint.h>

#include "volume/store/disk/layer.h"

/* Durably, with a new UUID. 0 or -errno. */
int format_write(struct store_layer *layer);
/* -ENOENT, -EPROTO (a newer version), -ENOTSUP (an older one), -EBADMSG, -errno. */
int format_read(struct store_layer *layer, uint8_t uuid[16]);

#endif
