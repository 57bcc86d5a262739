/* SPDX-License-Identifier: BSD-2-Clause */
/* The file FORMAT, which says that a directory is a store, of which version, and which one. */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include "volume/store/disk/layer.h"

#define FORMAT_VERSION 3
#define FORMAT_BEFORE  2 /* can be converted */
#define FORMAT_NAME    "FORMAT"

int format_new_uuid(uint8_t uuid[16]); /* 0 or -EIO */
/* Durably, in one step. `path`: FORMAT_NAME, or that in a folder. 0 or -errno. */
int format_write(struct store_layer *layer, const char *path, const uint8_t uuid[16]);
/* 0, -ENOENT, -EPROTO (a newer version), -ENOTSUP (FORMAT_BEFORE; *uuid is filled), -EBADMSG, -errno. */
int format_read(struct store_layer *layer, const char *path, uint8_t uuid[16]);

#endif
