/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying an application's configuration. */
#ifndef RXW_API_CONFIG_H
#define RXW_API_CONFIG_H

#include <stdbool.h>

#include <rxwire/config.h>

struct rxw_cc_ops;

/*
 * Copies the fields that the caller's structure has according to its `size`. Missing fields get
 * their defaults, as do memory sizes of 0. Checks all fields against the ranges of their options.
 * Returns 0, or -RXW_EINVAL (no size, or a field is out of range).
 */
int rxw_config_adopt(struct rxw_config *full, const struct rxw_config *from);

/* The tunable of this name, or NULL. */
const struct rxw_option *rxw_config_option(const char *name);

/* The congestion controller of calls with narrow or wide windows. */
const struct rxw_cc_ops *rxw_config_controller(const struct rxw_config *config, bool wide);

#endif
