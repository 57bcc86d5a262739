/* SPDX-License-Identifier: BSD-2-Clause */
/* Taking over a configuration that an application filled. */
#ifndef RXW_FACE_CONFIG_H
#define RXW_FACE_CONFIG_H

#include <rxwire/config.h>

/*
 * Copy what the caller's structure has, by its `size`; what it lacks gets its default, as do memory
 * sizes of 0. Checks every field against the range of its option. Returns 0, or -RXW_EINVAL (no
 * size, or a field set by hand is out of range). workers_min and reserved_short are cut to fit
 * workers_max.
 */
int rxw_config_adopt(struct rxw_config *full, const struct rxw_config *from);

#endif
