/* SPDX-License-Identifier: GPL-2.0 */
/* Nothing is exported here; the Makefile says so to the preprocessor. */
