/*
 * loader.h - loads the core, and tells whether it may be entered; private to libredlock.so. None of
 * these names is exported.
 */
#ifndef REDLOCK_LOADER_H
#define REDLOCK_LOADER_H

#include <stdbool.h>

#include "core.h"

/* To be called only after redlock_load or redlock_enter was OK in the same call. */
extern const struct redlock_core *redlock_core;

/* Loads the core unless this process has done so; a second copy in a forked child, if that is allowed. */
redlock_status redlock_load(bool copy_allowed, redlock_error *error);

/* OK if the core of this very process made the handle; gone if nobody did. */
redlock_status redlock_enter(uint64_t handle, redlock_status gone, redlock_error *error);

/* False if the caller's redlock_error has not been initialised. */
bool redlock_usable(const redlock_error *error);

/* Writes the message, cut to fit, and returns the status. */
__attribute__((format(printf, 3, 4))) redlock_status redlock_fail(redlock_error *error, redlock_status status,
                                                                  const char *format, ...);

#endif
