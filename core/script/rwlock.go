//go:build !wasm

package script

import _ "embed"

var (
	//go:embed rwlock.lua
	rwlock string // what the scripts of the read-write lock have in common
	//go:embed rwlock_acquire.lua
	rwlockAcquire string
	//go:embed rwlock_beat.lua
	rwlockBeat string
	//go:embed rwlock_raise.lua
	rwlockRaise string
	//go:embed rwlock_renew.lua
	rwlockRenew string
	//go:embed rwlock_regrant.lua
	rwlockRegrant string
	//go:embed rwlock_release.lua
	rwlockRelease string
	//go:embed rwlock_undo.lua
	rwlockUndo string
	//go:embed rwlock_inspect.lua
	rwlockInspect string
	//go:embed rwlock_force.lua
	rwlockForce string
)

// RWLock is the read-write lock's scripts.
var RWLock = family("rwlock", holders+rwlock, verbs{
	rwlockAcquire, rwlockBeat, rwlockRaise, rwlockRenew, rwlockRegrant, rwlockRelease, rwlockUndo, rwlockInspect, rwlockForce,
})
