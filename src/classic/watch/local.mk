# SPDX-License-Identifier: BSD-2-Clause
# Statistics, the client side of rxdebug, and addresses of interfaces.
