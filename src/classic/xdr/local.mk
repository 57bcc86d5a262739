# SPDX-License-Identifier: BSD-2-Clause
# XDR coders with the interface of classic Rx; identities and opaque values.
