# SPDX-License-Identifier: BSD-2-Clause
# Service keys and tokens, for the classes that need them. Sources and private headers, one pair a line.

rx_sources +=
