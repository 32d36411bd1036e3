package script

import _ "embed"

// The files, as strings: an embed.FS would bring in os and time.
var (
	//go:embed mutex.lua
	mutex string // what the scripts of the mutex have in common
	//go:embed mutex_acquire.lua
	mutexAcquire string
	//go:embed mutex_beat.lua
	mutexBeat string
	//go:embed mutex_raise.lua
	mutexRaise string
	//go:embed mutex_renew.lua
	mutexRenew string
	//go:embed mutex_regrant.lua
	mutexRegrant string
	//go:embed mutex_release.lua
	mutexRelease string
	//go:embed mutex_undo.lua
	mutexUndo string
	//go:embed mutex_inspect.lua
	mutexInspect string
	//go:embed mutex_force.lua
	mutexForce string
)

// Mutex is the mutex's scripts.
var Mutex = family("mutex", mutex, verbs{
	mutexAcquire, mutexBeat, mutexRaise, mutexRenew, mutexRegrant, mutexRelease, mutexUndo, mutexInspect, mutexForce,
})

// The scripts of the mutex.
var (
	MutexAcquire = Mutex.Acquire
	MutexBeat    = Mutex.Beat
	MutexRaise   = Mutex.Raise
	MutexRenew   = Mutex.Renew
	MutexRegrant = Mutex.Regrant
	MutexRelease = Mutex.Release
	MutexUndo    = Mutex.Undo
	MutexInspect = Mutex.Inspect
	MutexForce   = Mutex.Force
)
