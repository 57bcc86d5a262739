/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying an application's configuration. */
#ifndef RXW_API_CONFIG_H
#define RXW_API_CONFIG_H

#include <rxwire/config.h>

/*
 * Copies the fields that the caller's structure has according to its `size`. Missing fields get
 * their defaults, as do memory sizes of 0. Checks all fields against the ranges of their options.
 * Returns 0, or -RXW_EINVAL (no size, or a field is out of range).
 */
int rxw_config_adopt(struct rxw_config *full, const struct rxw_config *from);

/* The tunable of this name, or NULL. */
const struct rxw_option *rxw_config_option(const char *name);

#endif
