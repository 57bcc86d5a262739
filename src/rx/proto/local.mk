# SPDX-License-Identifier: BSD-2-Clause
# Floor 1 of librxwire: the state machines. Sources and private headers, one pair a line.

rx_sources +=
