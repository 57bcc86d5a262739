/* SPDX-License-Identifier: BSD-2-Clause */
/* Copying an application's configuration; the tunables and constants of an endpoint. */
#ifndef RXW_ENGINE_CONFIG_H
#define RXW_ENGINE_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/config.h>

#include "engine/core/constants.h"
#include "proto/peer/core.h"

/* Parameters of the protocol, which connections share. Fixed: rxw_endpoint_set() makes others. */
struct rxw_settings {
	struct rxw_params params;
	_Atomic(uint32_t) refs;
};

/* Of an endpoint. */
struct rxw_ep_settings {
	/* endpoint->lock; what other threads read is fixed, or stored in the members below, in `debug` and in workers */
	struct rxw_config config;
	struct rxw_constants constants; /* fixed */
	struct rxw_settings *current;	/* of new connections, one reference; peers.lock */
	_Atomic(uint32_t) window, mtu;	/* the same, for packets of no connection; relaxed */
	_Atomic(unsigned) connections_max, poll_us; /* relaxed */
};

/* Drop a reference of the settings of connections. */
void rxw_settings_unref(struct rxw_settings *settings);

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
