/* SPDX-License-Identifier: BSD-2-Clause */
/* The tunables of an endpoint, where other threads read them. */
#ifndef RXW_API_SETTINGS_H
#define RXW_API_SETTINGS_H

struct rxw_config;
struct rxw_endpoint;

/*
 * Endpoint's lock held, or no other thread knows it: puts `c` into effect, apart from the
 * limits of workers, and from what is fixed when threads and sockets are made. 0 or -RXW_ENOMEM.
 */
int rxw_settings_apply(struct rxw_endpoint *ep, const struct rxw_config *c);

#endif
